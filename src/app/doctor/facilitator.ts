import type { JobsConfig } from '../../base/config/config.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { createOffers, refreshOffers, unsettledKinds } from '../../jobs/use-cases/offers.ts';
import { createFacilitator } from '../../payments/peers/facilitator/facilitator.ts';
import { type CheckResult, fail, ok } from './check-result.ts';

const what = 'facilitator';
const longestMs = 5_000;
const nowhere: OperatorLog = { info() {}, warn() {}, error() {} };

/** Asks the facilitator what it settles, and compares that with the accepted tokens. */
export async function checkFacilitator(settings: JobsConfig): Promise<readonly CheckResult[]> {
  const { host } = new URL(settings.facilitatorUrl);
  const facilitator = createFacilitator({
    url: settings.facilitatorUrl,
    verifyTimeoutMs: Math.min(settings.facilitatorVerifyTimeoutMs, longestMs),
    settleTimeoutMs: settings.facilitatorSettleTimeoutMs,
    bearers: () => settings.facilitatorTokens,
  });
  const offers = createOffers(nowhere);
  try {
    const answer = await refreshOffers({ facilitator, offers, settings });
    if (answer.kind === 'unavailable')
      return [fail(what, `${host} does not answer /supported (${answer.cause})`, repairOf(answer.cause))];
    const missing = unsettledKinds({ offers, settings });
    if (missing.length === 0) return [ok(what, `${host} settles every accepted token`)];
    return [
      fail(
        what,
        `${host} does not settle ${missing.join(', ')}`,
        'Set facilitator_url to one that does, or take these tokens out of [[accepted_tokens]]: they are not offered.',
      ),
    ];
  } finally {
    await facilitator.close();
  }
}

function repairOf(cause: string): string {
  if (/^status_40[13]$/.test(cause))
    return 'Set facilitator_token to the token that the facilitator gave you, or to ID:KEY where it wants signed requests (docs/configuration.md#sign-requests-to-the-facilitator).';
  if (cause === 'timeout')
    return 'Let this machine reach it, or raise facilitator_verify_timeout_ms if it is slow.';
  return 'Correct facilitator_url: /supported is appended to it. Or let this machine reach it.';
}
