import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import type { Books } from './books.ts';
import { type Column, columnsOf, rowsOf } from './rows.ts';

const rowsInGroup = 10_000;

const schemaTypes = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  whole: { type: 'INT64' },
  instant: { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' },
} as const;

function schemaOf(columns: readonly Column[]) {
  return [
    { name: 'root', num_children: columns.length },
    ...columns.map(({ name, type }) => ({
      name,
      repetition_type: 'OPTIONAL' as const,
      ...schemaTypes[type],
    })),
  ];
}

/** The rows of the CSV, typed. Atoms and amounts are text: no number type of Parquet is wide enough for them. */
export async function* parquetOf(books: Books): AsyncGenerator<Buffer> {
  const { period, parts } = books;
  const columns = columnsOf(books);
  const writer = new ByteWriter();
  const parquet = new ParquetWriter({ writer, schema: schemaOf(columns), createdBy: 'tollbook' });
  let group: ReturnType<typeof rowsOf> = [];
  const write = (): Buffer => {
    const columnData = columns.map((column) => ({
      name: column.name,
      data: group.map((row) => cell(column, column.of(row))),
    }));
    void parquet.write({ columnData, rowGroupSize: rowsInGroup });
    group = [];
    return takeBytes(writer);
  };
  for await (const part of parts()) {
    if (part.kind === 'entry') group.push(...rowsOf(part, period));
    if (group.length >= rowsInGroup) yield write();
  }
  if (group.length > 0) yield write();
  void parquet.finish();
  yield takeBytes(writer);
}

function cell({ type }: Column, value: ReturnType<Column['of']>): unknown {
  return type === 'instant' && typeof value === 'string' ? new Date(value) : value;
}

/** The bytes written since the last call; the writer reuses its memory. */
function takeBytes(writer: ByteWriter): Buffer {
  const bytes = Buffer.from(writer.getBytes().slice());
  writer.index = 0;
  return bytes;
}
