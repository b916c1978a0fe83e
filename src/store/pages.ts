import type pg from 'pg';

export interface Page<Row> {
  /** The last event that the rows know of. */
  readonly asOfSeq: number;
  readonly rows: readonly Row[];
}

/** The generation that is read. */
export const active = '(select generation from tollbook.projection where is_active)';

/** Conditions that number their own parameters: values never become SQL. */
export class Conditions {
  readonly values: unknown[] = [];
  readonly #texts: string[] = [];

  /** `text` names its value `?`; a condition without a value is not one. */
  add(text: string, value: unknown): this {
    if (value === undefined) return this;
    this.values.push(value);
    this.#texts.push(text.replaceAll('?', `$${this.values.length}`));
    return this;
  }

  get sql(): string {
    return this.#texts.map((text) => ` and ${text}`).join('');
  }
}

/** Rows and how far their read model is, from one statement. */
export async function readPage<Row>(
  pool: pg.Pool,
  place: 'seq' | 'credit_seq',
  text: string,
  values: readonly unknown[],
): Promise<Page<Row>> {
  const { rows } = await pool.query<{ seq: number; page: Row[] | null }>(
    `select projection.${place} as seq, (select json_agg(row_to_json(page)) from (${text}) page) as page
     from tollbook.projection where is_active`,
    [...values],
  );
  return { asOfSeq: rows[0]?.seq ?? 0, rows: rows[0]?.page ?? [] };
}
