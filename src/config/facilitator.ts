import type { FacilitatorConfig } from './config.ts';
import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import type { RootTable } from './root.ts';
import { readSecret } from './secrets.ts';
import { facilitatorMarginSecs } from '../domain/payments/facilitator-margin.ts';

/** A payment must outlive the settlement by this much, or the facilitator refuses it. */
const settleMarginMs = facilitatorMarginSecs * 1_000;

/** Puts the `facilitator_*` keys together; undefined if any is wrong or the address is missing. */
export async function readFacilitator(
  root: RootTable,
  isRequired: boolean,
  reading: Reading,
): Promise<FacilitatorConfig | undefined> {
  const { values } = root;
  if (isRequired && !root.names('facilitator_url')) reading.report.mistake(['facilitator_url'], 'is missing');
  checkTimeouts(root, reading.report);
  const bearer = await readSecret(
    {
      at: [],
      envKey: 'facilitator_token_env',
      envName: values.facilitator_token_env,
      fileKey: 'facilitator_token_file',
      filePath: values.facilitator_token_file,
      minChars: 1,
    },
    reading,
  );
  if (root.whole?.facilitator_url === undefined) return undefined;
  return {
    url: root.whole.facilitator_url,
    verify: root.whole.facilitator_verify,
    verifyTimeoutMs: root.whole.facilitator_verify_timeout_ms,
    settleTimeoutMs: root.whole.facilitator_settle_timeout_ms,
    ...(bearer !== undefined && { bearer }),
  };
}

function checkTimeouts(root: RootTable, report: Report): void {
  const { max_timeout_secs: maxTimeoutSecs, facilitator_settle_timeout_ms: settleTimeoutMs } = root.values;
  if (maxTimeoutSecs === undefined || settleTimeoutMs === undefined) return;
  if (maxTimeoutSecs * 1_000 > settleTimeoutMs + settleMarginMs) return;
  // Told at the key that stands in the file.
  if (root.names('max_timeout_secs')) {
    const leastSecs = Math.floor((settleTimeoutMs + settleMarginMs) / 1_000) + 1;
    report.mistake(
      ['max_timeout_secs'],
      `must be at least ${leastSecs}: more than facilitator_settle_timeout_ms and ${facilitatorMarginSecs} s`,
    );
  } else {
    const mostMs = maxTimeoutSecs * 1_000 - settleMarginMs - 1;
    report.mistake(
      ['facilitator_settle_timeout_ms'],
      `must be at most ${mostMs}: ${facilitatorMarginSecs} s less than max_timeout_secs`,
    );
  }
}
