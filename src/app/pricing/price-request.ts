import { bytesToHex } from 'viem/utils';
import { type JobId, maxJobIndex, maxServiceId } from '../../base/values/job.ts';
import { zeroAddress, zeroHash } from '../../payments/rules/quote.ts';
import type { Address, Hex } from '../../base/values/primitives.ts';
import type { GetJobPriceRequest } from './generated/pricing_pb.ts';

/** Which quote a client asks for: as a quote has it, with the zero address where any may use it and the zero hash if it is open. */
export interface PriceRequest extends JobId {
  readonly requester: Address;
  readonly inputsHash: Hex;
}

export type PriceRequestRead =
  | { readonly kind: 'valid'; readonly request: PriceRequest }
  | { readonly kind: 'invalid'; readonly reason: string };

/** Reads a message's fields. The reason names the field and its valid values. */
export function readPriceRequest(
  message: Pick<GetJobPriceRequest, 'serviceId' | 'jobIndex' | 'requester' | 'inputsHash'>,
): PriceRequestRead {
  const { serviceId, jobIndex, requester, inputsHash } = message;
  if (serviceId > BigInt(maxServiceId)) return invalid(`service_id must be at most ${maxServiceId}`);
  if (jobIndex > BigInt(maxJobIndex)) return invalid(`job_index must be at most ${maxJobIndex}`);
  const wrong = wrongBytes('requester', requester, 20) ?? wrongBytes('inputs_hash', inputsHash, 32);
  if (wrong !== undefined) return invalid(wrong);
  return {
    kind: 'valid',
    request: {
      serviceId: Number(serviceId),
      jobIndex: Number(jobIndex),
      requester: requester.length === 0 ? zeroAddress : bytesToHex(requester),
      inputsHash: inputsHash.length === 0 ? zeroHash : bytesToHex(inputsHash),
    },
  };
}

function invalid(reason: string): PriceRequestRead {
  return { kind: 'invalid', reason };
}

function wrongBytes(name: string, bytes: Uint8Array, length: number): string | undefined {
  if (bytes.length === 0) return undefined;
  if (bytes.length !== length)
    return `${name} must have ${length} bytes or none, not ${bytes.length} (JSON has them as base64)`;
  // it would mean the same as none, and a client that sends it means something else
  return bytes.every((byte) => byte === 0)
    ? `${name} must not be zero: leave it empty for a quote that is not bound`
    : undefined;
}
