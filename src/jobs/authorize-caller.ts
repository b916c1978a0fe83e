import { type CallerClaim, callerDigest, readCallerClaim } from '../domain/payments/caller-signature.ts';
import type { Address } from '../domain/values/primitives.ts';
import { recoverSigner } from '../domain/values/ethereum-signature.ts';
import type { RefusalCode } from '../domain/errors/refusal.ts';
import { bytesToHex } from 'viem/utils';
import type { Job, Restriction } from './catalog.ts';
import { type JobsContext, nowSecs } from './context.ts';
import type { BoundRequest } from './job-request.ts';

/** Who calls a restricted job, as far as this process alone can tell. */
export interface FoundCaller {
  readonly caller: Address;
  /** The delegated claim; undefined where the payer is the caller. */
  readonly claim: CallerClaim | undefined;
  /** False where only the caller's own contract could still say that the signature is its. */
  readonly isProven: boolean;
}

/**
 * The caller of a delegated request, from its headers alone: no RPC is asked for an ordinary account.
 * Returns the code of what is missing, malformed or late.
 */
export function findDelegatedCaller(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
): FoundCaller | RefusalCode {
  const claim = readCallerClaim(
    request.callerHeaders,
    nowSecs(context),
    context.settings.maxSignatureTtlSecs,
  );
  if (typeof claim === 'string') return claim;
  const signer = recoverSigner(callerDigest(job, request.body, claim), claim.parsed);
  return { caller: claim.caller, claim, isProven: signer === claim.caller };
}

/** Whether a caller that did not sign as an ordinary account signed as a contract (ERC-1271). Undefined where it did. */
export async function proveContractCaller(
  context: JobsContext,
  restriction: Restriction,
  request: BoundRequest,
  job: Job,
  { caller, claim, isProven }: FoundCaller,
): Promise<'signature_mismatch' | 'permission_check_failed' | undefined> {
  if (isProven || !claim) return undefined;
  const answer = await context.contractSignatures.isValidSignature({
    rpcUrl: restriction.rpcUrl,
    account: caller,
    digest: bytesToHex(callerDigest(job, request.body, claim)),
    signature: claim.signature,
  });
  if (answer.kind === 'answer') return answer.valid ? undefined : 'signature_mismatch';
  context.log.warn({ caller, cause: answer.cause }, "a contract caller's signature could not be checked");
  return 'permission_check_failed';
}

/** Whether the operator's contract permits this caller now. Undefined where it does. */
export async function askPermission(
  context: JobsContext,
  { rpcUrl, contract }: Restriction,
  serviceId: number,
  caller: Address,
): Promise<'caller_not_permitted' | 'permission_check_failed' | undefined> {
  const answer = await context.permissions.isPermitted({ rpcUrl, contract, serviceId, caller });
  if (answer.kind === 'answer') return answer.permitted ? undefined : 'caller_not_permitted';
  context.log.warn({ caller, cause: answer.cause }, 'the permission contract gave no usable answer');
  return 'permission_check_failed';
}
