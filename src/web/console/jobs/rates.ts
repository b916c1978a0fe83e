import { tableSheet } from '../tables.ts';
import { html, type Html, type Shown } from '../../../base/values/html.ts';
import { rateText } from '../../../base/values/rate.ts';
import { tokenName } from '../../../base/values/token.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import { describeBroker } from '../../../calls/peers/broker/broker.ts';
import type { JobsContext } from '../../../jobs/use-cases/context.ts';
import { listingStatus } from '../../../jobs/use-cases/listings.ts';
import { type RateStatus, rateStatus } from '../../../jobs/use-cases/rates.ts';
import { ageText } from '../../../base/values/age-text.ts';
import { badge, type Column, decimalsOf, factList } from '../../pages/elements.ts';
import { networkName } from '../../pages/known-networks.ts';
import type { ConsoleSite } from '../visit.ts';
import { jobNamed } from '../words.ts';

/** The rate of every accepted token: from where, and how old. */
export function ratesSheet({ rates }: JobsContext): Html {
  const view = rates.view();
  const tokens = rateStatus(rates);
  const age: Column<RateStatus> = {
    label: 'Age',
    isNumber: true,
    cell: ({ ageSecs }) => (ageSecs === undefined ? '' : ageText(ageSecs)),
  };
  const columns: Column<RateStatus>[] = [
    { label: 'Token', cell: ({ token }) => html`${token.symbol} on ${networkName(token.network)}` },
    {
      label: 'Rate',
      isNumber: true,
      cell({ token }) {
        const rate = view.rates.get(tokenName(token));
        return (
          rate &&
          html`<span class="amount">${decimalsOf(rateText(rate), 0)}</span>
            <span class="unit">${token.symbol} for 1 ether</span>`
        );
      },
    },
    { label: 'Mark-up', isNumber: true, cell: ({ token }) => `${token.markupBps / 100}%` },
    {
      label: 'State',
      cell: ({ state, detail }) =>
        html`${badge(state, state === 'current' ? 'good' : state === 'old' ? 'warn' : 'bad')}${
          detail !== undefined && html`<span class="line hint">${visibleText(detail)}</span>`
        }`,
    },
    ...(tokens.some(({ ageSecs }) => ageSecs !== undefined) ? [age] : []),
    {
      label: 'Sources',
      cell({ token }): Shown {
        if (!token.rateTerms) return 'fixed in the configuration';
        const answers = view.rounds.get(tokenName(token))?.answers ?? [];
        return token.rateTerms.sources.map(({ name }) => {
          const answer = answers.find(({ source }) => source === name);
          const said = answer?.problem?.replaceAll('_', ' ') ?? answer?.rate ?? 'not asked yet';
          return html`<span class="line">${name} <span class="hint">${visibleText(said)}</span></span>`;
        });
      },
    },
  ];
  return tableSheet('Rates of prices in ether', columns, tokens, {
    none: ['Rates', 'No token is accepted.'],
  });
}

/** The facilitators, brokers and discovery services. */
export function peersSheet(site: Pick<ConsoleSite, 'jobs'>, context: JobsContext): Html {
  const facilitators = context.facilitators.states();
  const broker = context.brokerState();
  const trouble = broker && describeBroker(broker);
  const listing = listingStatus(context);
  const services = [...(listing?.services.values() ?? [])];
  const gone = services.flatMap((service) => service.gone.map(({ job }) => job));
  const listed = services.reduce((sum, service) => sum + service.listed.length, 0);
  return html`<section class="sheet">
    <h2>Peers</h2>
    ${factList([
      ...facilitators.map(({ label, isCircuitOpen }): [string, Html] => [
        'Facilitator',
        html`${label}
        ${
          isCircuitOpen
            ? badge(
                facilitators.every((one) => one.isCircuitOpen)
                  ? 'circuit breaker open: no payments are started'
                  : 'circuit breaker open: the others settle',
                'bad',
              )
            : badge('answers', 'good')
        }`,
      ]),
      broker && [
        'Broker',
        trouble === undefined
          ? badge('ready', 'good')
          : [badge('trouble', 'bad'), ` ${visibleText(trouble)}`],
      ],
      listing && [
        'Listings',
        [
          `${listed} at ${listing.host}`,
          gone.length > 0 && [
            badge('gone', 'bad'),
            gone.slice(0, 20).map((key) => html`<span class="line">${jobNamed(site, key)}</span>`),
          ],
          listing.unknown !== undefined && html` ${badge('unknown', 'warn')} ${visibleText(listing.unknown)}`,
        ],
      ],
    ])}
  </section>`;
}
