import type { JobsConfig } from '../../base/config/config.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { createOffers, refreshOffers, unsettledKinds } from '../../jobs/use-cases/offers.ts';
import { createFacilitator } from '../../payments/peers/facilitator/facilitator.ts';
import { createFacilitators } from '../../payments/peers/facilitator/facilitators.ts';
import { type CheckResult, fail, ok } from './check-result.ts';

const what = 'facilitator';
const longestMs = 5_000;
const nowhere: OperatorLog = { info() {}, warn() {}, error() {} };

/** Asks the facilitators what they settle, and compares that with the accepted tokens. */
export async function checkFacilitators(settings: JobsConfig): Promise<readonly CheckResult[]> {
  const facilitators = createFacilitators(
    settings.facilitators.map(({ name, label, url, tokens }) => ({
      name,
      label,
      client: createFacilitator({
        url,
        verifyTimeoutMs: longestMs,
        settleTimeoutMs: settings.facilitatorSettleTimeoutMs,
        bearers: () => tokens,
      }),
    })),
  );
  const offers = createOffers(nowhere);
  try {
    const answer = await refreshOffers({ facilitators, offers, settings });
    const silent = facilitators
      .states()
      .flatMap(({ label, trouble }) =>
        trouble === undefined
          ? []
          : [fail(what, `${label} does not answer /supported (${trouble})`, repairOf(trouble))],
      );
    if (answer.kind === 'unavailable') return silent;
    const all = settings.facilitators.map(({ label }) => label).join(', ');
    const missing = unsettledKinds({ offers, settings });
    if (missing.length > 0)
      return [
        ...silent,
        fail(
          what,
          `${all} does not settle ${missing.join(', ')}`,
          'Name a facilitator that does, or take these tokens out of [[accepted_tokens]]: they are not offered.',
        ),
      ];
    return silent.length > 0 ? silent : [ok(what, `${all} settles every accepted token`)];
  } finally {
    await facilitators.close();
  }
}

function repairOf(cause: string): string {
  if (/^status_40[13]$/.test(cause))
    return 'Set facilitator_token to the token that the facilitator gave you, or to ID:KEY where it wants signed requests (docs/configuration.md#sign-requests-to-the-facilitator).';
  if (cause === 'timeout')
    return `Let this machine reach it: it did not answer within ${longestMs / 1_000} s.`;
  return 'Correct facilitator_url: /supported is appended to it. Or let this machine reach it.';
}
