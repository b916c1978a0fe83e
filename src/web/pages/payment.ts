import { formatUnits } from 'viem/utils';
import { html, type Html, type Shown } from '../../base/values/html.ts';
import type { SettlementOption } from '../../payments/rules/quote.ts';
import type { Job } from '../../jobs/use-cases/catalog.ts';
import type { Offers } from '../../jobs/use-cases/offers.ts';
import { type ConfiguredNetworks, networkName, walletNetworks } from './known-networks.ts';

/** A job's price in one token, as a wallet can pay it. */
export interface Payable extends Pick<
  SettlementOption,
  'network' | 'asset' | 'symbol' | 'decimals' | 'amount' | 'creditMicros'
> {
  /** Where the job is paid for. */
  readonly path: string;
}

/** The ways in which a wallet can pay for a job now: EIP-3009, where nothing has to be sent to the chain before. */
export function payablesOf({ offers }: { readonly offers: Offers }, job: Job): readonly Payable[] {
  const path = `/x402/jobs/${job.serviceId}/${job.jobIndex}`;
  const options = offers.of(job.options).filter(({ transferMethod }) => transferMethod === 'eip3009');
  return options.map((option) => ({ ...option, path }));
}

export interface PaymentFormOptions {
  /** What is paid for, as this browser names it: a payment whose end is not known is kept under it. */
  readonly purpose: string;
  /** What is chosen: `Pay with`. */
  readonly legend?: string;
  /** One or more. */
  readonly payables: readonly Payable[];
  readonly networks: ConfiguredNetworks;
  /** What stands before a price. */
  readonly gives?: (payable: Payable) => Shown;
  /** The form's own fields. */
  readonly fields?: Shown;
  /** Fields after the choice. */
  readonly more?: Shown;
  readonly button: string;
  /** The last step, such as `Add the credit`. */
  readonly delivered: string;
  /** How to pay without this page's script or a wallet. */
  readonly without: Shown;
}

/** A form that pays with the wallet of the browser, with its visible steps: `bindPayForm` of assets/pay-form.js makes it work. */
export function paymentForm(options: PaymentFormOptions): Html {
  const { purpose, fields, more, button, delivered, without } = options;
  const networks = walletNetworks(options.networks);
  return html`<div class="pay" data-purpose="${purpose}" data-networks="${JSON.stringify(networks)}">
    ${walletSteps(stepsWith(delivered))}
    <div class="notice" data-without-wallet>${without}</div>
    <form hidden>
      ${fields}${choice(options)}${more}
      <fieldset data-wallets hidden>
        <legend>Wallet</legend>
        <div class="choices"></div>
      </fieldset>
      <button>${button}</button>
    </form>
  </div>`;
}

function choice({ legend = 'Pay with', payables, gives, networks }: PaymentFormOptions): Html {
  return html`<fieldset>
    <legend>${legend}</legend>
    <div class="choices">
      ${payables.map(
        (payable, index) =>
          html`<label
            >${radio(payable, index)}<span>${gives?.(payable)} ${priceIn(payable, networks)}</span></label
          >`,
      )}
    </div>
  </fieldset>`;
}

/** A displayed price: the amount, the token and its network. */
export function priceIn({ network, symbol, decimals, amount }: Payable, networks: ConfiguredNetworks): Html {
  return html`${formatUnits(amount, decimals)} ${symbol}
    <span class="hint">on ${networkName(network, networks)}</span>`;
}

/** With the price's values, which the module compares with the 402. */
function radio(payable: Payable, index: number): Html {
  const { path, network, asset, symbol, decimals, amount, creditMicros } = payable;
  return html`<input
    type="radio"
    name="payable"
    value="${index}"
    ${index === 0 && html`checked`}
    data-path="${path}"
    data-network="${network}"
    data-asset="${asset}"
    data-symbol="${symbol}"
    data-decimals="${decimals}"
    data-amount="${amount}"
    ${creditMicros !== undefined && html`data-credit="${creditMicros}"`}
  />`;
}

function stepsWith(delivered: string): readonly (readonly [name: string, label: string])[] {
  return [
    ['connect', 'Connect the wallet'],
    ['offer', 'Ask the gateway for its price'],
    ['check', 'Check the network and what the wallet has'],
    ['sign', 'Sign the payment'],
    ['send', 'Send the payment'],
    ['deliver', delivered],
  ];
}

/** The steps that the module of a page goes through with the wallet, and their outcome. */
export function walletSteps(steps: ReturnType<typeof stepsWith>): Html {
  return html`<p class="notice" data-outcome role="status" hidden></p>
    <ol class="steps" data-steps hidden>
      ${steps.map(
        ([name, label]) =>
          html`<li data-step="${name}" data-state="open">
            <span class="label">${label}</span> <span class="unseen" data-mark></span>
            <span class="hint" data-detail></span>
          </li>`,
      )}
    </ol>`;
}
