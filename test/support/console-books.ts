import { reportText, type ReportJson } from '../../src/finance/rules/reconcile/report.ts';
import { createScanner } from '../../src/payments/peers/chain/transfer-scan.ts';
import { ledgerInDatabase } from '../../src/finance/use-cases/reconcile/ledger-source.ts';
import { reconcile } from '../../src/finance/use-cases/reconcile/reconcile.ts';
import { storeReconciliation } from '../../src/audit/store/reconciliations.ts';
import type { TestDatabase } from './database.ts';
import type { TestChain } from './devnet.ts';
import { payTo } from './gateway.ts';
import { sealAll, testVerifier } from './log.ts';

const network = 'eip155:84532';

/** Reconciles a ledger with the local chain, and stores the report; returns its number and what it says. */
export async function storeReport(
  database: TestDatabase,
  { rpcUrl, token }: Pick<TestChain, 'rpcUrl' | 'token'>,
  period: { readonly fromMs: number; readonly toMs: number },
): Promise<{ readonly id: number; readonly report: ReportJson }> {
  await sealAll(database);
  const scanner = createScanner({ network, chainId: 84_532, rpcUrl, timeoutMs: 20_000 });
  try {
    const report = await reconcile({
      period,
      source: await ledgerInDatabase(database.pool, testVerifier, undefined),
      chains: new Map([[network, scanner]]),
      accepted: [{ network, asset: token, symbol: 'USDC', decimals: 6, payTo }],
      pinned: new Map(),
      twice: false,
      resumeFile: undefined,
      onProgress: () => {},
    });
    return { id: await storeReconciliation(database.pool, reportText(report)), report };
  } finally {
    await scanner.close();
  }
}
