import type { NoteSigner } from '../../../base/values/log/checkpoint.ts';
import { checkAnchors, compareAnchors, currentVerifier } from '../../../audit/use-cases/log/anchors.ts';
import type { Anchor } from '../../../audit/peers/anchors/anchor.ts';
import { readExportEnd } from '../../../ledger/store/export.ts';
import { readLogGeneration } from '../../../audit/store/log.ts';
import { readHalt, readTimeOf } from '../../../ledger/store/recovery.ts';
import { decideStart } from './decide-start.ts';
import { findLoss, type Loss } from './find-loss.ts';
import type { Ledger } from '../../../ledger/store/ledger.ts';
import { beginRecovery } from './recover.ts';
import { doesGatewayRun } from './running-gateways.ts';

export interface GoLiveOrder {
  readonly operator: string;
  readonly why: string;
  /** The signer of the log's first generation; undefined if nothing is sealed. */
  readonly signer: NoteSigner | undefined;
  readonly anchors: readonly Anchor[];
}

export type GoLiveResult =
  /** Gateways start live on this database without it. */
  | { readonly kind: 'is_live' }
  | { readonly kind: 'went_live'; readonly generation: number }
  /** A live gateway runs: it would continue the generation before. */
  | { readonly kind: 'gateway_runs' }
  /** Events are known to be missing: `tollbook recover` continues without them, and finds their payments. */
  | { readonly kind: 'lossy'; readonly loss: Loss };

/**
 * Makes this database the ledger: the next generation of the log begins, and its event names the database, the operator and the
 * reason. Of several simultaneous commands, one does it.
 * @throws ForgottenHistoryError if the ledger was recovered into another database
 */
export async function goLive(
  ledger: Ledger,
  { operator, why, signer, anchors }: GoLiveOrder,
): Promise<GoLiveResult> {
  const { pool } = ledger;
  // read first: another command that goes live meanwhile makes the append below fail
  const { generation: after } = await readLogGeneration(pool);
  const compare = async () =>
    signer ? compareAnchors(pool, await currentVerifier(pool, signer), anchors) : [];
  const decision = await decideStart({ pool, compareAnchors: compare, patienceMs: 0 });
  const halt = await readHalt(pool);
  if (decision.kind === 'live' && !halt) return { kind: 'is_live' };
  if (await doesGatewayRun(pool)) return { kind: 'gateway_runs' };
  const loss = await findLoss(pool, await compare(), halt);
  if (loss) return { kind: 'lossy', loss };
  if (signer) await checkAnchors(pool, signer, anchors);
  const { last: keptSeq } = await readExportEnd(pool);
  const sinceSecs = (await readTimeOf(pool, keptSeq)) ?? Math.floor(Date.now() / 1_000);
  const nothingLost = { anchored: undefined, lostFrom: undefined, lostTo: undefined };
  const recovery = await beginRecovery(ledger, {
    loss: { ...nothingLost, reason: 'went_live', keptSeq, sinceSecs },
    sinceSecs,
    operator,
    why,
    signer,
    after,
  });
  return recovery ? { kind: 'went_live', generation: recovery.data.generation } : { kind: 'is_live' };
}
