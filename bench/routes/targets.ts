import path from 'node:path';
import { freePort } from '../../src/devnet/ports.ts';
import type { Bench } from '../bench.ts';
import type { Stage, Target } from '../measure.ts';
import { paymentGateway } from '../payment-targets.ts';
import { type Program, startProgram } from '../processes.ts';
import { terms } from '../terms.ts';
import { startTollbook, type TollbookOptions } from '../tollbook.ts';
import { pathOf, type RouteName, routeNames } from './terms.ts';

export type RouteStage = Stage & { readonly upstream: Program };

/** Tollbook in two configurations, each with its own ledger, and the official x402 middlewares with a proxy each. */
export async function startRouteTargets(bench: Bench, stage: RouteStage, stub: string): Promise<Target[]> {
  const { keep, dir, beforeDir } = bench;
  const targets: Target[] = [];
  const addTollbook = async (name: string, verifies: boolean, from?: string): Promise<void> => {
    const ledger = await keep(stage.ledger.beside(`${stub}_${targets.length}`));
    const gateway = await routeGateway(paymentGateway({ ...stage, ledger }, verifies, dir), stage.upstream);
    const program = from === undefined ? undefined : path.join(from, 'src/app/cli/tollbook.ts');
    const { pid } = await keep(startTollbook({ ...gateway.options, program }));
    const { url } = gateway;
    targets.push({ name, isPeer: false, pid, url, ledger, offersUrl: url, verifies, signed: true });
  };
  await addTollbook('Tollbook', true);
  await addTollbook('Tollbook, facilitator_verify = false', false);
  if (beforeDir !== undefined) await addTollbook('Tollbook, before', true, beforeDir);
  for (const [peer, proxy] of Object.entries(proxies)) {
    const { pid, url } = await keep(
      startProgram(`peers/${peer}-proxy.mjs`, [stage.stub.url, stage.upstream.url]),
    );
    const name = `@x402/${peer}, ${proxy}`;
    targets.push({ name, isPeer: true, pid, url, offersUrl: url, verifies: true, signed: false });
  }
  return targets;
}

const proxies = { express: 'http-proxy-middleware', hono: 'hono/proxy' };

/** A gateway that sells the paths of the upstream as well, and the address where it does. */
export async function routeGateway(
  gateway: TollbookOptions,
  upstream: Program,
): Promise<{ readonly options: TollbookOptions; readonly url: string }> {
  const port = await freePort();
  const tables = routeNames.map((route, at) => routeTables(route, at + 2, upstream.url)).join('');
  const listener = `
[route_listener]
bind_address = "127.0.0.1:${port}"
# the same for the gateway that makes the quotes and for the one that is measured
public_url = "http://127.0.0.1"
`;
  const configText = (own: number): string => gateway.configText(own) + listener + tables;
  return { options: { ...gateway, configText }, url: `http://127.0.0.1:${port}` };
}

function routeTables(route: RouteName, serviceId: number, upstreamUrl: string): string {
  return `
[[routes]]
service_id = ${serviceId}
job_index = 0
path = "${pathOf(route)}"
flow = "${route === 'authorization' ? route : 'upfront'}"
upstream = "${upstreamUrl}"

[job_prices.${serviceId}]
0 = "${terms.priceWei}"
`;
}
