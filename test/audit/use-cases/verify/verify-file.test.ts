import { expect, test } from 'vitest';
import { verifyFile } from '../../../../src/audit/use-cases/verify/verify-file.ts';
import { ExportVerifier } from '../../../../src/audit/use-cases/verify/verify.ts';
import { testVerifier } from '../../../support/log.ts';
import { temporaryFolder } from '../../../support/program.ts';

const threads = (): number =>
  process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length;

test('verifying an unreadable file fails and leaves no thread that would keep the process from ending', async () => {
  const before = threads();
  const verifying = verifyFile(temporaryFolder(), new ExportVerifier([], testVerifier));
  await expect(verifying).rejects.toThrow('EISDIR');
  expect(threads()).toBe(before);
});
