import net from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { boundPort, freePort } from '../../../src/devnet/ports.ts';
import { says, useDoctor } from '../../support/doctor.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { isInstalled, notChecked } from '../../support/installed.ts';
import { startHttpProxy } from '../../support/http-proxy.ts';
import { startRateSource } from '../../support/rate-source.ts';
import { startRpcProxy } from '../../support/rpc-proxy.ts';
import { startSignedServer, trustHere } from '../../support/signed-server.ts';
import { eventually } from '../../support/wait.ts';

const { chain, peer, urlFor, faults } = useDoctor();

const noOpenssl = notChecked('TLS', isInstalled('openssl', 'version') ? [] : ['openssl']);

const network = 'network eip155:84532';

/** A block's time so long ago. */
const behind = (secs: number): string => `0x${(Math.floor(Date.now() / 1_000) - secs).toString(16)}`;

const withPublicUrl = (url: string) => ({ change: (text: string) => `public_url = "${url}"\n${text}` });

/** The first token gets its rate from these. */
const withSources = (...urls: readonly string[]) => {
  const sources = urls.map((url) => `{ kind = "http", url = "${url}", pointer = "/rate" }`).join(', ');
  const keys = `decimals = 6\nrates = [${sources}]`;
  return { change: (text: string) => text.replace('decimals = 6', keys) };
};

const routeTo = (upstream: string, index: number) => `[[routes]]
service_id = 9
job_index = ${index}
path = "/${index}"
upstream = "${upstream}"
price = "0.01 USD"
token = "env:QUOTE_KEY"
`;

test('a facilitator that is away, refuses its token or does not settle a token fails, each with its repair', async () => {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const facilitatorUrl = proxy.url;
  proxy.faults.supported = { answer: { kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:1' }] } };
  expect(await faults({ facilitatorUrl })).toEqual({
    code: 1,
    faults: [
      says('fail', 'facilitator', /does not settle exact payments on eip155:84532$/, /^Name a facilitator/),
    ],
  });
  proxy.admits = () => false;
  expect((await faults({ facilitatorUrl })).faults).toEqual([
    says('fail', 'facilitator', /\/supported \(status_401\)$/, /^Set facilitator_token/),
  ]);
  proxy.admits = () => true;
  proxy.faults.supported = 'hang';
  expect((await faults({ facilitatorUrl })).faults).toEqual([
    says('fail', 'facilitator', /\(timeout\)$/, /did not answer within/),
  ]);
  expect((await faults({ facilitatorUrl: 'http://127.0.0.1:1' })).faults).toEqual([
    says('fail', 'facilitator', /^127\.0\.0\.1:1 does not answer .*connection/, /^Correct facilitator_url/),
  ]);
});

test('an RPC that is away, of another chain, behind its chain, or without final blocks fails, and the repair names its key', async () => {
  const rpc = await startRpcProxy(chain.rpcUrl);
  const change = (text: string) => text.replace(chain.rpcUrl, rpc.url);
  rpc.lie = ({ method }) => (method === 'eth_chainId' ? { result: '0x1' } : undefined);
  expect(await faults({ change })).toEqual({
    code: 1,
    faults: [says('fail', network, /serves another chain$/, /^Set networks\[0\]\.rpc_url to an RPC of/)],
  });
  const block = { number: '0x1', hash: `0x${'1'.repeat(64)}` };
  rpc.lie = ({ method, params }) =>
    method === 'eth_getBlockByNumber' && params[0] === 'latest'
      ? { result: { ...block, timestamp: behind(900) } }
      : undefined;
  expect((await faults({ change })).faults).toEqual([
    says('fail', network, /block 1 of 90\d s ago$/, /caught up/),
  ]);
  rpc.lie = ({ method, params }) =>
    method === 'eth_getBlockByNumber' && params[0] === 'finalized' ? { result: null } : undefined;
  expect((await faults({ change })).faults).toEqual([
    says('fail', network, /names no final block/, /answers eth_getBlockByNumber "finalized"/),
  ]);
  const away = await faults({ change: (text) => text.replace(chain.rpcUrl, 'http://127.0.0.1:1') });
  expect(away.faults).toEqual([
    says('fail', network, /^127\.0\.0\.1:1 does not answer/, /^Correct networks\[0\]\.rpc_url/),
  ]);
});

test('sources of rates are asked: one that is left out is a warning, a token without a rate fails', async () => {
  const good = await startRateSource('{"rate": 3200}');
  const bad = await startRateSource('{}');
  const left = says(
    'warn',
    'rates',
    /^accepted_tokens\[0\]\.rates\[2\] the source source-3 is left out/,
    /rates\.md/,
  );
  expect(await faults(withSources(good.url, good.url, bad.url))).toEqual({ code: 0, faults: [left] });
  const none = await faults(withSources(bad.url));
  expect(none.code).toBe(1);
  expect(none.faults).toContainEqual(
    says(
      'fail',
      'rates',
      /^accepted_tokens\[0\]\.rates no rate .*would not be offered$/,
      /Repair its sources/,
    ),
  );
});

test('upstreams that cannot be reached fail, each host once, and nothing is sent to those that can', async () => {
  let asked = 0;
  const seen = net.createServer((socket) => {
    socket.on('error', () => {}).on('data', () => asked++);
  });
  seen.listen(0, '127.0.0.1');
  await eventually(() => expect(seen.listening).toBe(true));
  onTestFinished(() => void seen.close());
  const here = `http://127.0.0.1:${boundPort(seen)}`;
  const routes = [here, 'http://127.0.0.1:1/a', 'http://127.0.0.1:1/b'].map(routeTo);
  const tables = `[route_listener]\nbind_address = "127.0.0.1:0"\n${routes.join('')}`;
  expect(await faults({ tables })).toEqual({
    code: 1,
    faults: [says('fail', 'upstream', /^http:\/\/127\.0\.0\.1:1 cannot/, /correct routes\[1\]\.upstream\.$/)],
  });
  expect(asked).toBe(0);
});

test('a route whose answers a runner of the gateway makes has no host to ask', async () => {
  const sold = routeTo('job:1/0', 0).replace('token = "env:QUOTE_KEY"', 'methods = ["POST"]');
  const runner = '[[runners]]\nservices = [1]\nmode = "lease"\ntoken = "env:QUOTE_KEY"\n';
  const tables = `[route_listener]\nbind_address = "127.0.0.1:0"\n${sold}${runner}`;
  expect(await faults({ tables })).toEqual({ code: 0, faults: [] });
});

test('public_url is asked: no gateway there is a warning, a proxy that refuses payment headers fails', async () => {
  expect(await faults(withPublicUrl(`http://127.0.0.1:${await freePort()}`))).toEqual({
    code: 0,
    faults: [says('warn', 'public_url', /^no gateway answers at .*connection/, /^Start the gateway/)],
  });
  expect((await faults(withPublicUrl(peer()))).faults).toEqual([
    says('warn', 'public_url', /HTTP 200/, /let the proxy pass every path/),
  ]);
  const gateway = await startTestGateway({
    database: { url: urlFor('gateway') } as never,
    chain,
    runnerUrl: undefined,
  });
  expect(await faults(withPublicUrl(gateway.url))).toEqual({ code: 0, faults: [] });
  // Node's own limit of all headers together
  const proxy = await startHttpProxy(
    () => gateway.url,
    (_, forward) => forward(),
  );
  onTestFinished(() => proxy.close());
  expect(await faults(withPublicUrl(proxy.url))).toEqual({
    code: 1,
    faults: [says('fail', 'public_url', /16 KiB does not reach the gateway \(HTTP 431\)$/, /nginx/)],
  });
});

test.skipIf(noOpenssl)(
  `over https the certificate of public_url is checked, and that clients keep their own addresses${noOpenssl}`,
  async () => {
    let status = 404;
    const proxy = await startSignedServer(5, (_, response) => {
      response.writeHead(status).end(status === 200 ? '{"status":"ok","ledger":{"status":"ok"}}' : '');
    });
    const url = `https://localhost:${proxy.port}`;
    expect(await faults(withPublicUrl(url))).toEqual({
      code: 1,
      faults: [
        says(
          'fail',
          'public_url',
          /not accepted \(DEPTH_ZERO_SELF_SIGNED_CERT\)$/,
          /valid certificate for localhost/,
        ),
      ],
    });
    trustHere(proxy.certificate);
    const ends = says(
      'warn',
      'public_url',
      /^the certificate of https:\/\/localhost:\d+ ends in 4 days$/,
      /Renew/,
    );
    const absent = says('warn', 'public_url', /HTTP 404/, /^Start the gateway/);
    expect((await faults(withPublicUrl(url))).faults).toEqual([ends, absent]);
    status = 200;
    const change = (text: string) =>
      withPublicUrl(url).change(text).replace('trust_proxy = ["127.0.0.1"]', 'trust_proxy = []');
    expect((await faults({ change })).faults).toEqual([
      ends,
      says('warn', 'trust_proxy', /share its limits$/, /^Name the proxy in trust_proxy/),
    ]);
    const away = await faults(withPublicUrl(`https://localhost:${await freePort()}`));
    expect(away.faults).toEqual([
      says('warn', 'public_url', /ECONNREFUSED/, /^Let localhost lead to the proxy/),
    ]);
  },
);
