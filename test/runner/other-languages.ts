import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { once } from 'node:events';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { processEnvironment } from '../../src/base/config/environment.ts';
import { boundPort } from '../../src/devnet/ports.ts';
import { runnerSecret } from '../support/gateway.ts';
import { destroy, type Program, spawnProgram, temporaryFolder } from '../support/program.ts';

const examples = path.resolve(import.meta.dirname, '../../examples');
export const pythonRunner = path.join(examples, 'runner.py');

/**
 * A job for either runner: it notes each run, then does what the body says. `refuse` is refused for good, `later` fails the first time,
 * a body that begins with `wait` comes back once the folder has a file `go`, and every other comes back at once.
 */
const pythonJob = (folder: string) => `
import sys, time, os
sys.path.insert(0, ${JSON.stringify(examples)})
sys.dont_write_bytecode = True
import runner

def act(call):
    with open(${JSON.stringify(path.join(folder, 'runs'))}, "a") as runs:
        runs.write(f"{call.key} {call.attempt}\\n")
    if call.body == b"refuse":
        raise runner.Refuse("no such model")
    if call.body == b"later" and call.attempt == 1:
        raise runner.RetryLater("not yet", 1)
    while call.body.startswith(b"wait") and not os.path.exists(${JSON.stringify(path.join(folder, 'go'))}):
        time.sleep(0.02)
    return "application/x-odd", call.body

runner.JOBS = {(1, 0): act}
runner.LEASE_SECS = 5
runner.main()
`;
const shellJob = (folder: string) => `cd '${folder}'
echo "$IDEMPOTENCY_KEY $ATTEMPT" >> runs
cat > "body-$CALL_ID"
case "$(tr -d '\\0' < "body-$CALL_ID")" in
  refuse) echo 'no such model' >&2; exit 65 ;;
  later) if [ "$ATTEMPT" = 1 ]; then echo 'not yet' >&2; exit 75; fi ;;
  wait*) while ! [ -f go ]; do sleep 0.02; done ;;
esac
cat "body-$CALL_ID"`;

export type Language = 'Python' | 'shell';

/** The programs that the runner of a language needs and this machine does not have. */
export function missingFor(language: Language): string[] {
  const programs = { Python: ['python3'], shell: ['bash', 'curl', 'jq', 'base64'] }[language];
  const { PATH = '' } = processEnvironment();
  const missing = programs.filter((program) => {
    try {
      execFileSync(program, ['--version'], { stdio: 'ignore', env: { PATH } });
      return false;
    } catch {
      return true;
    }
  });
  if (missing.length > 0)
    process.stderr.write(`\n*** NOT CHECKED: THE RUNNER IN ${language} WANTS ${missing.join(', ')}\n\n`);
  return missing;
}

export interface LanguageRunner {
  readonly folder: string;
  /** One line for each run of the job: its idempotency key and its attempt. */
  readonly runs: () => readonly string[];
  /** Lets the runs go on that wait. */
  readonly go: () => void;
  readonly start: (where: { readonly gatewayUrl?: string; readonly port?: number }) => Program;
}

/** A runner with the job above; it keeps its results over a restart. */
export function languageRunner(language: Language): LanguageRunner {
  const folder = temporaryFolder();
  const job = path.join(folder, 'job.py');
  const runs = path.join(folder, 'runs');
  writeFileSync(job, pythonJob(folder));
  const command = {
    Python: ['python3', job],
    shell: ['bash', path.join(examples, 'runner.sh'), shellJob(folder)],
  }[language];
  return {
    folder,
    runs: () => (existsSync(runs) ? readFileSync(runs, 'utf8').trim().split('\n') : []),
    go: () => appendFileSync(path.join(folder, 'go'), ''),
    start({ gatewayUrl, port }) {
      const program = spawnProgram(['bash', '-c', 'exec "$@" 2>&1', 'bash', ...command], folder, {
        RUNNER_TOKEN: runnerSecret,
        RESULTS: path.join(folder, 'results'),
        RESULT_TYPE: 'application/x-odd',
        LEASE_SECS: '5',
        ...(gatewayUrl === undefined ? {} : { GATEWAY_URL: gatewayUrl }),
        ...(port === undefined ? {} : { PORT: String(port) }),
      });
      onTestFinished(() => destroy(program));
      return program;
    },
  };
}

/** A proxy before a gateway, as a load balancer is, which answers some requests itself. */
export interface RudeProxy {
  readonly url: string;
  /** How many requests came whose path ends so. */
  readonly seen: (end: string) => number;
  /** Answers the request itself: a status, or 'cut' to end the connection. Undefined passes it on. */
  rule: (
    path: string,
    nth: number,
  ) => { status: number; headers?: Record<string, string> } | 'cut' | undefined;
}

export async function startRudeProxy(target: string): Promise<RudeProxy> {
  const paths: string[] = [];
  const server = http.createServer((request, response) => {
    void (async () => {
      const body = Buffer.concat((await request.toArray()) as Buffer[]);
      const { url = '', method = 'POST' } = request;
      paths.push(url);
      const end = url.slice(url.lastIndexOf('/'));
      const rude = proxy.rule(end, proxy.seen(end));
      if (rude === 'cut') return void request.socket.destroy();
      if (rude) return void response.writeHead(rude.status, rude.headers).end('{"error":"busy"}');
      const passed = http.request(target + url, { method, headers: request.headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      response.once('close', () => passed.destroy());
      passed.on('error', () => request.socket.destroy());
      passed.end(body);
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.close().closeAllConnections();
    await once(server, 'close');
  });
  const proxy: RudeProxy = {
    url: `http://127.0.0.1:${boundPort(server)}`,
    seen: (end) => paths.filter((one) => one.endsWith(end)).length,
    rule: () => undefined,
  };
  return proxy;
}
