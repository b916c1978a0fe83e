import type { DeliveryConfig, LimitsConfig } from './config.ts';
import type { Report } from './report.ts';
import { readTable } from './table.ts';
import { wholeNumber } from './values.ts';

const mebibyte = 1_048_576;

const limitsShape = {
  max_body_bytes: wholeNumber(1, 64 * mebibyte).default(mebibyte),
  requests_per_minute: wholeNumber(0, 1_000_000).default(600),
  max_outstanding_calls: wholeNumber(1, 100_000_000).default(10_000),
  max_in_flight_requests: wholeNumber(1, 1_000_000).default(2_000),
} as const;

const deliveryShape = {
  max_attempts: wholeNumber(1, 1_000).default(12),
  backoff_base_ms: wholeNumber(1, 3_600_000).default(1_000),
  backoff_cap_ms: wholeNumber(1, 86_400_000).default(300_000),
  timeout_ms: wholeNumber(1, 3_600_000).default(30_000),
  lease_secs: wholeNumber(1, 86_400).default(60),
  concurrency_per_runner: wholeNumber(1, 10_000).default(32),
  max_result_bytes: wholeNumber(0, 64 * mebibyte).default(mebibyte),
} as const;

/** Reads `[limits]`; undefined after a report. */
export function readLimits(raw: unknown, report: Report): LimitsConfig | undefined {
  const { whole } = readTable(limitsShape, raw ?? {}, ['limits'], report);
  return (
    whole && {
      maxBodyBytes: whole.max_body_bytes,
      requestsPerMinute: whole.requests_per_minute,
      maxOutstandingCalls: whole.max_outstanding_calls,
      maxInFlightRequests: whole.max_in_flight_requests,
    }
  );
}

/** Reads `[delivery]`; undefined after a report. */
export function readDelivery(raw: unknown, report: Report): DeliveryConfig | undefined {
  const { values, whole } = readTable(deliveryShape, raw ?? {}, ['delivery'], report);
  checkDelivery(values, report);
  return (
    whole && {
      maxAttempts: whole.max_attempts,
      backoffBaseMs: whole.backoff_base_ms,
      backoffCapMs: whole.backoff_cap_ms,
      timeoutMs: whole.timeout_ms,
      leaseSecs: whole.lease_secs,
      concurrencyPerRunner: whole.concurrency_per_runner,
      maxResultBytes: whole.max_result_bytes,
    }
  );
}

function checkDelivery(
  values: ReturnType<typeof readTable<typeof deliveryShape>>['values'],
  report: Report,
): void {
  const {
    backoff_base_ms: baseMs,
    backoff_cap_ms: capMs,
    timeout_ms: timeoutMs,
    lease_secs: leaseSecs,
  } = values;
  if (baseMs !== undefined && capMs !== undefined && capMs < baseMs) {
    report.mistake(['delivery', 'backoff_cap_ms'], `must not be below backoff_base_ms (${baseMs})`);
  }
  if (timeoutMs !== undefined && leaseSecs !== undefined && leaseSecs * 1_000 <= timeoutMs) {
    report.warning(
      ['delivery', 'lease_secs'],
      `ends before a push times out (${timeoutMs} ms): calls may be pushed twice`,
    );
  }
}
