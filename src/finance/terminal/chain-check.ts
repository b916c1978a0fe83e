import type pg from 'pg';
import type { ClosedPeriod } from '../rules/periods/periods.ts';
import { ledgerInDatabase, ledgerInFile } from '../use-cases/reconcile/ledger-source.ts';
import { ArgumentError, readRpcUrls } from '../../base/terminal/arguments.ts';
import { readConfig } from '../../audit/terminal/chains.ts';
import type { ChainCheck } from './check-period.ts';
import { givenVerifier, readCheckpoints } from '../../audit/terminal/given-proof.ts';

interface ChainValues {
  readonly rpc: readonly string[];
  readonly pubkey?: string | undefined;
  readonly config?: string | undefined;
}

type GivenLedger =
  | { readonly pool: pg.Pool }
  | { readonly file: string; readonly checkpoints: readonly string[] };

/**
 * The chains that the options name, and the ledger at the sealed head of the close; undefined where they name none.
 * @throws ArgumentError, CheckpointError or ReconcileError where the options do not say enough
 */
export async function readChainCheck(
  { rpc, pubkey, config: file }: ChainValues,
  { close }: ClosedPeriod,
  ledger: GivenLedger,
): Promise<ChainCheck | undefined> {
  if (file === undefined && rpc.length === 0) return undefined;
  const rpcUrls = readRpcUrls(rpc);
  const config = file === undefined ? undefined : await readConfig(file);
  const verifier = await givenVerifier(pubkey, config, 'pool' in ledger ? ledger.pool : undefined);
  if (!verifier)
    throw new ArgumentError(
      'the head of the close is checked with the public key: give --pubkey, or a --config with a log',
    );
  const { size } = close.data.head;
  if ('pool' in ledger)
    return { rpcUrls, config, source: await ledgerInDatabase(ledger.pool, verifier, size) };
  const checkpoints = (await Promise.all(ledger.checkpoints.map(readCheckpoints))).flat();
  return { rpcUrls, config, source: ledgerInFile(ledger.file, checkpoints, verifier, size) };
}
