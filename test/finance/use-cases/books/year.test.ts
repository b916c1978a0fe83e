import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { openBooks } from '../../../../src/finance/use-cases/books/books.ts';
import { writeBooks } from '../../../../src/finance/use-cases/books/format.ts';
import { openFileSource } from '../../../../src/finance/use-cases/books/source.ts';
import { absence, complaintsOf, isAbsent } from '../../../support/journal-tools.ts';
import { temporaryFolder } from '../../../support/program.ts';
import { booksFrom, exportFile, february, january, periodOf, twoMonths } from './support.ts';

const march = periodOf('2026-03', '2026-04');

for (const tool of ['hledger', 'beancount'] as const) {
  test.skipIf(isAbsent(tool))(
    `the journals of a year's months, one after the other, are a journal that ${tool} accepts, every balance asserted${absence(tool)}`,
    async () => {
      const file = exportFile(twoMonths().both);
      const continued = async (month: typeof january) => {
        const source = openFileSource(file, Date.now(), march.toMs);
        const books = await openBooks(
          source,
          { fromMs: january.fromMs, toMs: month.toMs },
          { continuedAtMs: month.fromMs },
        );
        return Buffer.concat(await Array.fromAsync(writeBooks(books, tool))).toString();
      };
      const first = (await booksFrom(file, january, tool)).toString();
      const [second, third] = [await continued(february), await continued(march)];
      const out = path.join(temporaryFolder(), `year.${tool}`);
      const complaints = async (...parts: string[]) => {
        writeFileSync(out, parts.join('\n'));
        return complaintsOf(tool, out);
      };
      expect(await complaints(first, second, third)).toBe('');
      // a month that is missing, or that opens again, is noticed
      expect(await complaints(second, third)).not.toBe('');
      expect(await complaints(first, (await booksFrom(file, february, tool)).toString())).not.toBe('');
    },
  );
}
