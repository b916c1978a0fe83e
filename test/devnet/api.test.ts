import { expect, onTestFinished, test } from 'vitest';
import { signCall } from '../../src/base/values/call-signature.ts';
import { startWeatherApi } from '../../src/devnet/api.ts';

const secret = 'a-secret-of-the-api-of-enough-characters';

async function get(path: string, signedWith?: string) {
  const api = await startWeatherApi({ secret });
  onTestFinished(() => api.close());
  const metadata = { 'x-net-service-id': '3' };
  const call = { id: `0x${'1'.repeat(64)}`, timestampSecs: Math.floor(Date.now() / 1_000), metadata };
  const headers = signedWith && {
    ...metadata,
    ...signCall({ secret: signedWith, body: Buffer.of(), ...call }),
  };
  const response = await fetch(`${api.url}${path}`, headers ? { headers } : {});
  return { status: response.status, text: await response.text() };
}

test('the example API answers signed requests with JSON and with a stream, the same for a city every time', async () => {
  const answer = await get('/weather/berlin?units=c', secret);
  expect(answer).toEqual({ status: 200, text: '{"city":"berlin","celsius":6,"sky":"clear"}\n' });
  expect(await get('/weather/berlin', secret)).toEqual(answer);
  const { text } = await get('/forecast/berlin', secret);
  expect(text.match(/^data: \{"hour":"\d\d:00","city":"berlin",.*\}$/gm)).toHaveLength(4);
});

test.each([
  ['that is not signed', '/weather/berlin', undefined, 401],
  ['that is signed with another secret', '/weather/berlin', `${secret}s`, 401],
  ['for the list of its paths', '/', undefined, 200],
  ['for a path that it does not have', '/rain/berlin', secret, 404],
])('the example API answers a request %s: %s', async (_what, path, signedWith, status) => {
  expect((await get(path, signedWith)).status).toBe(status);
});
