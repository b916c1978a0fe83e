/** A job's id: a service and one of its jobs. Both are safe integers, exact as JSON numbers. */
export interface JobId {
  readonly serviceId: number;
  readonly jobIndex: number;
}

export const invocationModes = ['disabled', 'public_paid', 'restricted_paid'] as const;
export type InvocationMode = (typeof invocationModes)[number];

/** How a permission contract takes the service: it is the same word of calldata, under another selector. */
export const serviceIdTypes = ['uint64', 'uint256'] as const;
export type ServiceIdType = (typeof serviceIdTypes)[number];

export const authModes = ['payer_is_caller', 'delegated_caller_signature'] as const;
export type AuthMode = (typeof authModes)[number];

/** Largest service id: JSON numbers stay exact up to here. */
export const maxServiceId = Number.MAX_SAFE_INTEGER;
/** Largest job index: the quote's EIP-712 type gives it 32 bits. */
export const maxJobIndex = 0xffff_ffff;

/** A job's id as a map key: `1/0`. */
export function jobKey(job: JobId): string {
  return `${job.serviceId}/${job.jobIndex}`;
}

const canonicalDecimal = /^(?:0|[1-9]\d{0,15})$/;

/**
 * Reads the two path segments of a job.
 * Returns undefined for anything that is not a canonical decimal within bounds: such a job cannot exist.
 */
export function parseJobId(service: string, index: string): JobId | undefined {
  if (!canonicalDecimal.test(service) || !canonicalDecimal.test(index)) return undefined;
  const job = { serviceId: Number(service), jobIndex: Number(index) };
  return job.serviceId <= maxServiceId && job.jobIndex <= maxJobIndex ? job : undefined;
}
