export interface RouteConfigValues {
  readonly upstreamUrl: string;
  /** Of the listener of the routes. */
  readonly port: number;
}

/** A longer answer is passed on, and not stored. */
export const longestKeptBytes = 200_000;

/** What each route costs, and at most where its answers say what they have used, by this header. */
export const routePriceWei = 10n ** 15n;
export const priceHeader = 'x-price';

/** Four routes: one whose upstream answers first, one that is charged by its answer, and two that are settled first. */
export function routeTables({ upstreamUrl, port }: RouteConfigValues): string {
  const route = (index: number, method: string, path: string, more = '') => `
[[routes]]
service_id = 7
job_index = ${index}
methods = ["${method}"]
path = "${path}/:name"
upstream = "${upstreamUrl}"
token = "env:CHAOS_RUNNER_TOKEN"
timeout_ms = 1_500
answer_hours = 24
${more}
`;
  return `
[route_listener]
bind_address = "127.0.0.1:${port}"
public_url = "https://routes.chaos.example"

[job_prices.7]
${[0, 1, 2, 3].map((index) => `${index} = "${routePriceWei}"`).join('\n')}
${route(0, 'GET', '/files')}
${route(1, 'GET', '/streams', 'flow = "upfront"')}
${route(2, 'POST', '/orders')}
${route(3, 'GET', '/metered', `charge_header = "${priceHeader}"`)}`;
}
