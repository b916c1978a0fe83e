import { createInterface } from 'node:readline/promises';
import { ArgumentError, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { appCommands } from '../descriptions.ts';
import { type Answers, type Ask, type Asked, askAll, questions, readFolder } from '../init/answers.ts';
import { isInstalled, checkUnits } from '../init/units.ts';
import { databaseFolder, type Starter, writeGateway } from '../init/write-files.ts';

/** Asks what no option says, writes the files of a gateway, and says what to do next. */
export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(appCommands.init, args);
  const { facilitator, units, compose, 'rpc-url': rpcUrl } = values;
  if (units && compose) throw new ArgumentError('--units and --compose exclude each other');
  if (compose && values.database !== undefined)
    throw new ArgumentError('--compose has a database of its own: leave out --database');
  const starter = compose ? 'compose' : units ? 'units' : 'shell';
  const dir = readFolder(values.dir);
  if (units) checkUnits(dir);
  const terminal = createInterface({ input: process.stdin });
  const ask = askOf(values, terminal[Symbol.asyncIterator]());
  const answers = await askAll(ask, { facilitator, rpcUrl, hasDatabase: compose }).finally(() =>
    terminal.close(),
  );
  const files = await writeGateway(dir, answers, starter);
  say(`Written to ${dir}: ${files.join(', ')}\n\n${nextSteps(dir, answers, starter)}`);
  return exitCodes.done;
}

/** Answers by the options, or by the lines of a terminal, where a person may try again, or of another program. */
function askOf(given: Readonly<Partial<Record<Asked, string>>>, lines: AsyncIterator<string, unknown>): Ask {
  return async (about, read) => {
    const known = given[about];
    if (known !== undefined) return read(known);
    const { text, usual } = questions[about];
    for (;;) {
      fail(usual === undefined ? `${text}:` : `${text} [${usual}]:`);
      const line = await lines.next();
      if (line.done) throw new ArgumentError(`the input ended: answer with --${about}`);
      const answer = line.value.trim();
      try {
        return read(answer === '' && usual !== undefined ? usual : answer);
      } catch (error) {
        if (!(error instanceof ArgumentError && process.stdin.isTTY)) throw error;
        fail(error.message);
      }
    }
  };
}

/** As a person types it: in a clone npm knows where it is. */
function typedCommand(): string {
  return isInstalled() ? 'tollbook' : 'npm run -s tollbook --';
}

/** Each step is a command, or says what only the operator can do. */
function nextSteps(dir: string, answers: Answers, starter: Starter): string {
  const { publicUrl, network, sold } = answers;
  const isCompose = starter === 'compose';
  const keyPlace = isCompose ? 'the variable FACILITATOR_TOKEN' : `${dir}/credentials/FACILITATOR_TOKEN`;
  const tokenPlace = isCompose
    ? 'that this prints: docker compose exec gateway cat /run/tollbook/RUNNER_TOKEN'
    : `in ${dir}/credentials/RUNNER_TOKEN`;
  const compose = `docker compose --file docker-compose.yml --file ${dir}/compose.yaml up --detach gateway`;
  const steps = [
    ...(network.facilitator.key === 'signs'
      ? [`Write the key from the portal of the facilitator, ID:KEY, into ${keyPlace}`]
      : []),
    ...(isCompose ? [compose] : startSteps(dir, answers, starter)),
    ...(publicUrl === undefined
      ? []
      : [
          `Get a certificate for ${new URL(publicUrl).hostname}`,
          `cp ${dir}/nginx.conf /etc/nginx/conf.d/tollbook.conf && nginx -t && nginx -s reload`,
        ]),
    ...(sold.kind === 'job' ? [`Give your runner the token ${tokenPlace}`] : []),
    ...(isCompose
      ? []
      : [`( set -a; . ${dir}/gateway.env; ${typedCommand()} doctor --config ${dir}/tollbook.toml )`]),
  ];
  const money = network.isTest ? 'Test money' : 'REAL MONEY';
  return [
    `Sold: ${sold.kind === 'api' ? 'each request to' : 'the job'} ${sold.what} for ${sold.price}`,
    `${money} on ${network.name} goes to ${answers.payTo}; ${new URL(network.facilitator.url).host} settles it.`,
    'Next:',
    ...steps.map((step, index) => `${index + 1}. ${step}`),
  ].join('\n');
}

/** Debian's superuser has no password, and enters from this machine alone. */
function superuserOf(server: string | undefined): string {
  const [host, port] = server?.split(':') ?? [];
  if (host !== 'localhost') return `psql postgresql://SUPERUSER@${server}/postgres`;
  return port === undefined ? 'su postgres -c psql' : `su postgres -c 'psql --port=${port}'`;
}

/** Makes the database, and starts the gateway on this machine. */
function startSteps(dir: string, { databaseServer }: Answers, starter: Starter): string[] {
  const config = `--config ${dir}/tollbook.toml`;
  const isEmbedded = databaseServer === undefined;
  const superuser = superuserOf(databaseServer);
  const database = isEmbedded
    ? []
    : [`${superuser} < ${dir}/create-database.sql && rm ${dir}/create-database.sql`];
  if (starter === 'units')
    return [
      ...database,
      `cp ${dir}/*.service /etc/systemd/system/ && systemctl daemon-reload`,
      ...(isEmbedded ? [] : ['systemctl start tollbook-migrate']),
      'systemctl enable --now tollbook',
    ];
  const withVariables = (file: string, command: string): string =>
    `( set -a; . ${dir}/${file}; ${typedCommand()} ${command} )`;
  const options = isEmbedded ? ` --embedded ${databaseFolder(dir, starter)}` : '';
  return [
    ...database,
    ...(isEmbedded ? [] : [withVariables('owner.env', 'migrate')]),
    withVariables('gateway.env', `serve ${config}${options}`),
  ];
}
