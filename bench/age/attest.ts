import { owedSummary, signAttestation } from '../../src/audit/rules/attestation.ts';
import { readPresentHead } from '../../src/audit/use-cases/log/changed-events.ts';
import { rootFromTiles } from '../../src/audit/use-cases/log/prove.ts';
import { verifierOf } from '../../src/base/values/log/checkpoint.ts';
import { foldOwed } from '../../src/finance/use-cases/attestations/attested.ts';
import { recordAttestation } from '../../src/finance/use-cases/attestations/attest.ts';
import type { Lane } from '../../src/ledger/store/lane.ts';
import { findStreamsThatMayOwe } from '../../src/payments/store/refunds.ts';
import type { Ledger } from '../ledger.ts';
import { auditor } from './keys.ts';

/** Records what a verifier signs who has verified the whole ledger: here its maker knows that it is sound. */
export async function recordMakersAttestation({ pool }: Ledger, lane: Lane): Promise<void> {
  const size = (await readPresentHead(pool))?.size ?? 0;
  const mayOwe = await findStreamsThatMayOwe({ client: pool, seq: size });
  const owed = owedSummary(await foldOwed({ client: pool }, mayOwe, size));
  const note = signAttestation({ size, root: await rootFromTiles(pool, size), owed }, auditor);
  const order = { note, verifier: verifierOf(auditor), operator: 'bench' };
  const { kind } = await recordAttestation({ pool, lane }, order);
  if (kind === 'refused') throw new Error('the attestation was refused');
}
