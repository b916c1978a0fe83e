import {
  type CallerClaim,
  type CallerClaimRefusal,
  callerDigest,
  readCallerClaim,
} from '../../payments/rules/caller-signature.ts';
import type { Address } from '../../base/values/primitives.ts';
import { recoverSigner } from '../../base/values/ethereum-signature.ts';
import { type RefusalCode, refusals } from '../../base/errors/refusal.ts';
import { findNonceUse } from '../../payments/store/claims.ts';
import { bytesToHex } from 'viem/utils';
import type { Job, Restriction } from './catalog.ts';
import type { JobsConfig } from '../../base/config/config.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { ContractSignatureChecker } from '../../base/peers/rpc/contract-signature.ts';
import type { PermissionChecker } from '../../base/peers/rpc/permission.ts';
import { nowSecs, type LedgerWriter } from '../../ledger/store/ledger.ts';
import type { BoundRequest } from './job-request.ts';

export interface CallerPorts extends LedgerWriter {
  readonly settings: JobsConfig;
  readonly permissions: PermissionChecker;
  readonly contractSignatures: ContractSignatureChecker;
  readonly log: OperatorLog;
}

/** The caller of a restricted job, by the checks of this process alone. */
export interface FoundCaller {
  readonly kind: 'found';
  readonly caller: Address;
  /** The delegated claim; undefined if the payer is the caller. */
  readonly claim: CallerClaim | undefined;
  /** False if only the caller's own contract could still confirm the signature. */
  readonly isProven: boolean;
}

/** Every code that the checks of a caller can fail with. */
export type CallerRefusalCode =
  | CallerClaimRefusal
  | 'signature_mismatch'
  | 'signature_replay'
  | 'caller_not_permitted'
  | 'permission_check_failed';

/** One check of a caller, and how it came out. */
export interface CallerCheck<Code extends RefusalCode = CallerRefusalCode> {
  readonly name: 'caller' | 'signature' | 'nonce' | 'permission';
  readonly result:
    | { readonly kind: 'passed' }
    | {
        readonly kind: 'failed';
        readonly code: Code;
        /** The quote whose payment has used the nonce. */
        readonly usedBy?: string;
      };
  /** For the dry run. */
  readonly detail: string;
}

/**
 * The caller of a delegated request, only from its headers: for an ordinary account no RPC is needed.
 * Fails with the code of the first header that is missing, malformed or expired.
 */
export function findDelegatedCaller(
  context: CallerPorts,
  request: BoundRequest,
  job: Job,
): FoundCaller | { readonly kind: 'failed'; readonly code: CallerClaimRefusal } {
  const claim = readCallerClaim(
    request.callerHeaders,
    nowSecs(context),
    context.settings.maxSignatureTtlSecs,
  );
  if (typeof claim === 'string') return { kind: 'failed', code: claim };
  const signer = recoverSigner(callerDigest(job, request.body, claim), claim.parsed);
  return { kind: 'found', caller: claim.caller, claim, isProven: signer === claim.caller };
}

/**
 * Step 5, check by check, for the paid flow and the dry run: the caller is proven, its nonce is unused, it is permitted. Ends
 * after a failed signature, since only the owner of a nonce may learn whether it is used.
 */
export async function* checkCaller(
  context: CallerPorts,
  request: BoundRequest,
  job: Job,
  restriction: Restriction,
  found: FoundCaller,
): AsyncGenerator<CallerCheck> {
  const { caller, claim, isProven } = found;
  if (claim) {
    const signature = isProven
      ? passed('signature', signatureDetail)
      : await checkContractSignature(context, restriction, request, job, claim);
    yield signature;
    if (signature.result.kind === 'failed') return;
    const usedBy = await findNonceUse(context.pool, caller, job, claim.nonce);
    yield usedBy === undefined
      ? passed('nonce', 'unused; a dry run does not use it')
      : failed('nonce', 'signature_replay', usedBy);
  }
  yield await checkPermission(context, restriction, job.serviceId, caller);
}

const signatureDetail = 'over this body, job, nonce and expiry';

/** A caller that did not sign as an ordinary account may have signed as a contract (ERC-1271). */
async function checkContractSignature(
  context: CallerPorts,
  { rpcUrl, chainId }: Restriction,
  request: BoundRequest,
  job: Job,
  claim: CallerClaim,
): Promise<CallerCheck> {
  const { caller, signature } = claim;
  const answer = await context.contractSignatures.isValidSignature({
    rpcUrl,
    ...(chainId !== undefined && { chainId }),
    account: caller,
    digest: bytesToHex(callerDigest(job, request.body, claim)),
    signature,
  });
  if (answer.kind === 'answer')
    return answer.valid ? passed('signature', signatureDetail) : failed('signature', 'signature_mismatch');
  context.log.warn(
    { account: caller, cause: answer.cause },
    'the signature of a contract account could not be checked: its request was refused',
  );
  return failed('signature', 'permission_check_failed');
}

/** Whether the operator's contract permits this caller now. */
async function checkPermission(
  context: CallerPorts,
  { rpcUrl, chainId, contract, serviceIdType }: Restriction,
  serviceId: number,
  caller: Address,
): Promise<CallerCheck> {
  const question = { rpcUrl, chainId, contract, serviceIdType, serviceId, caller };
  const answer = await context.permissions.isPermitted(question);
  if (answer.kind === 'answer')
    return answer.permitted
      ? passed('permission', `${contract} permits it`)
      : failed('permission', 'caller_not_permitted');
  context.log.warn(
    { caller, cause: answer.cause },
    'the permission contract gave no usable answer: the request was refused',
  );
  return failed('permission', 'permission_check_failed');
}

export function passed(name: CallerCheck['name'], detail: string): CallerCheck<never> {
  return { name, result: { kind: 'passed' }, detail };
}

export function failed<Code extends RefusalCode>(
  name: CallerCheck['name'],
  code: Code,
  usedBy?: string,
): CallerCheck<Code> {
  const result = { kind: 'failed', code, ...(usedBy === undefined ? {} : { usedBy }) } as const;
  return { name, result, detail: refusals[code].sentence };
}
