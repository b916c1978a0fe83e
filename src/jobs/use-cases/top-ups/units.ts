import { jsonValue } from '../../../base/values/bounded-json.ts';
import type { Hex } from '../../../base/values/primitives.ts';
import { isTopUpUnits, mostTopUpUnits } from '../../../base/values/top-up.ts';
import { isMeantAsOrder, readTopUpOrder } from '../../../base/values/top-up-order.ts';
import { inputsHashOf, type SettlementOption } from '../../../payments/rules/quote.ts';
import type { Job } from '../catalog.ts';
import type { WholeRequest } from '../job-request.ts';

type Units =
  | { readonly kind: 'units'; readonly units: number }
  | { readonly kind: 'fault'; readonly text: string };

const one = { kind: 'units', units: 1 } as const;
const wrong = { kind: 'fault', text: `units must be a whole number from 1 to ${mostTopUpUnits}` } as const;

/** How many times its top-up a request buys: its order says it, or the member `units` of a JSON object; all else buys one. */
export function readUnits({ body }: Pick<WholeRequest, 'body'>): Units {
  if (isMeantAsOrder(body)) {
    const order = readTopUpOrder(body.toString('latin1'));
    return order ? { kind: 'units', units: order.units } : one;
  }
  const sent = body.subarray(0, 64).toString('latin1').trimStart().startsWith('{')
    ? jsonValue(body)
    : undefined;
  if (typeof sent !== 'object' || sent === null || !Object.hasOwn(sent, 'units')) return one;
  const { units } = sent as { readonly units: unknown };
  return isTopUpUnits(units) ? { kind: 'units', units } : wrong;
}

/** Of a request that was checked: 1 for a job that sells no credit. */
export function unitsOf({ isTopUp }: Pick<Job, 'isTopUp'>, request: Pick<WholeRequest, 'body'>): number {
  const read = isTopUp ? readUnits(request) : one;
  return read.kind === 'units' ? read.units : 1;
}

/** A top-up at the price and with the credit of so many units; its quote is then for this body alone. */
export function topUpOfUnits(
  job: Job,
  request: Pick<WholeRequest, 'body'>,
): Job & { readonly inputsHash?: Hex } {
  const units = unitsOf(job, request);
  if (units === 1) return job;
  return {
    ...job,
    priceWei: job.priceWei * BigInt(units),
    options: optionsOf(job, units),
    inputsHash: inputsHashOf(request.body),
  };
}

const multiples = new WeakMap<readonly SettlementOption[], Map<number, readonly SettlementOption[]>>();
const beyondUint256 = 1n << 256n;
const mostMicros = BigInt(Number.MAX_SAFE_INTEGER);

/** The same list for the same units: what is made of a list of options is known by that list. */
function optionsOf({ options, priceWei }: Job, units: number): readonly SettlementOption[] {
  const known = multiples.get(options) ?? new Map<number, readonly SettlementOption[]>();
  multiples.set(options, known);
  const list =
    known.get(units) ??
    options.flatMap((option) => {
      const { amount, creditMicros = 0n } = option;
      const times = { amount: amount * BigInt(units), creditMicros: creditMicros * BigInt(units) };
      // neither an account nor a digest holds more
      const isTooMuch =
        times.creditMicros > mostMicros ||
        [times.amount, priceWei * BigInt(units)].some((many) => many >= beyondUint256);
      return isTooMuch ? [] : [{ ...option, ...times }];
    });
  known.set(units, list);
  return list;
}
