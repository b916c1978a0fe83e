import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { signCall } from '../../src/base/values/call-signature.ts';
import { json, routeToken, signed, startApi, startRouteGateway } from '../jobs/http/routes/support.ts';
import { useChain } from '../support/devnet.ts';
import { isInstalled, notChecked, packageEnvironment } from '../support/installed.ts';
import { readPage } from '../support/pages.ts';
import { temporaryFolder } from '../support/program.ts';

const chain = useChain();
const { blocks } = readPage('docs/routes.md');
const city = '/weather/paris';

/** The page's function in a program that reads cases as JSON, `[headers, token]` each, and prints what the function says of each. */
const languages = [
  {
    name: 'Node',
    language: 'js',
    file: 'check.mjs',
    command: [process.execPath],
    isHere: true,
    program: (block: string) => `${block}
      import { readFileSync } from 'node:fs';
      console.log(JSON.stringify(JSON.parse(readFileSync(0)).map(([headers, token]) => isPaid(headers, token))));`,
  },
  {
    name: 'Python',
    language: 'python',
    file: 'check.py',
    command: ['python3'],
    isHere: isInstalled('python3'),
    program: (block: string) =>
      `${block}\nimport sys\nprint(json.dumps([is_paid(headers, token) for headers, token in json.load(sys.stdin)]))\n`,
  },
  {
    name: 'Go',
    language: 'go',
    file: 'check.go',
    command: ['go', 'run'],
    isHere: isInstalled('go', 'version'),
    program: (block: string) => `package main
import ("crypto/hmac"; "crypto/sha256"; "encoding/base64"; "encoding/json"; "fmt"; "net/http"; "os"; "strconv"; "strings"; "time")
${block}
func main() {
	var cases [][2]json.RawMessage
	json.NewDecoder(os.Stdin).Decode(&cases)
	found := []bool{}
	for _, one := range cases {
		var fields map[string]string
		var token string
		json.Unmarshal(one[0], &fields)
		json.Unmarshal(one[1], &token)
		header := http.Header{}
		for name, value := range fields {
			header.Set(name, value)
		}
		found = append(found, isPaid(header, token))
	}
	json.NewEncoder(os.Stdout).Encode(found)
}`,
  },
] as const;

/** The headers of a call that is signed with another secret, or earlier. */
function resigned(secret: string | [string, string], ageSecs = 0): Record<string, string> {
  const metadata = { 'x-net-service-id': '7' };
  const timestampSecs = Math.floor(Date.now() / 1_000) - ageSecs;
  const call = { id: `0x${'1'.repeat(64)}`, timestampSecs, body: Buffer.of() };
  return { ...metadata, ...signCall({ secret, ...call, metadata }) };
}

const missing = languages.filter(({ isHere }) => !isHere).map(({ name }) => name.toUpperCase());
const present = languages.filter(({ isHere }) => isHere);

test(`the functions of docs/routes.md find what the gateway signed paid, and nothing else${notChecked('docs/routes.md', missing)}`, async () => {
  const api = await startApi(json);
  const gateway = await startRouteGateway({ chain, upstream: api.url });
  expect((await gateway.paid.get(city, await signed(gateway, city))).status).toBe(200);
  const { headers } = api.asked[0] ?? {};
  const { 'x-net-metadata-signature': _, ...unsigned } = headers ?? {};
  const other = `${routeToken}s`;
  const cases = [
    [true, headers, routeToken],
    [true, resigned([other, routeToken]), routeToken],
    [true, resigned(routeToken, 100), routeToken],
    [false, resigned(routeToken, 400), routeToken],
    [false, headers, other],
    [false, { ...headers, 'x-net-call-id': '2' }, routeToken],
    [false, { ...headers, 'x-net-caller': '0xabc' }, routeToken],
    [false, { ...headers, 'webhook-timestamp': String(Math.floor(Date.now() / 1_000) + 1) }, routeToken],
    [false, { ...headers, 'x-net-metadata-signature': headers?.['webhook-signature'] }, routeToken],
    [false, unsigned, routeToken],
    [false, {}, routeToken],
  ] as const;
  for (const { name, language, file, command, program } of present) {
    const folder = temporaryFolder();
    const block = blocks.find((one) => one.language === language)?.text ?? '';
    writeFileSync(path.join(folder, file), program(block));
    const [executable, ...args] = command;
    const printed = execFileSync(executable, [...args, file], {
      cwd: folder,
      env: { ...packageEnvironment(), HOME: folder },
      input: JSON.stringify(cases.map(([, fields, token]) => [fields, token])),
    });
    expect([name, ...(JSON.parse(printed.toString()) as boolean[])]).toEqual([
      name,
      ...cases.map(([isPaid]) => isPaid),
    ]);
  }
});
