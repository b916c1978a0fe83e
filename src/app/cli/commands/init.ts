import { createInterface } from 'node:readline/promises';
import { ArgumentError, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { appCommands } from '../descriptions.ts';
import { type Answers, type Asked, questions, readAnswers, readFolder } from '../init/answers.ts';
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
  const answers = readAnswers(await ask(compose ? { ...values, database: 'embedded' } : values), {
    facilitator,
    rpcUrl,
  });
  const files = await writeGateway(dir, answers, starter);
  say(`Written to ${dir}: ${files.join(', ')}\n\n${nextSteps(dir, answers, starter)}`);
  return exitCodes.done;
}

/** The answers that the options give, and those of the terminal or of the lines of another program. */
async function ask(given: Readonly<Partial<Record<Asked, string>>>): Promise<Record<Asked, string>> {
  const terminal = createInterface({ input: process.stdin });
  const lines = terminal[Symbol.asyncIterator]();
  const answers: [Asked, string][] = [];
  try {
    for (const { about, text, usual } of questions) {
      const known = given[about];
      if (known === undefined) fail(usual === undefined ? `${text}:` : `${text} [${usual}]:`);
      const answer = known ?? (await lines.next()).value?.trim();
      if (answer === undefined) throw new ArgumentError(`the input ended: answer with --${about}`);
      answers.push([about, answer === '' && usual !== undefined ? usual : answer]);
    }
  } finally {
    terminal.close();
  }
  return Object.fromEntries(answers) as Record<Asked, string>;
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
    ...(isCompose ? [] : [`( set -a; . ${dir}/gateway.env; tollbook doctor --config ${dir}/tollbook.toml )`]),
  ];
  const money = network.isTest ? 'Test money' : 'REAL MONEY';
  return [
    `Sold: ${sold.kind === 'api' ? 'each request to' : 'the job'} ${sold.what} for ${sold.price}`,
    `${money} on ${network.name} goes to ${answers.payTo}; ${new URL(network.facilitator.url).host} settles it.`,
    'Next:',
    ...steps.map((step, index) => `${index + 1}. ${step}`),
  ].join('\n');
}

/** Makes the database, and starts the gateway on this machine. */
function startSteps(dir: string, { databaseServer }: Answers, starter: Starter): string[] {
  const config = `--config ${dir}/tollbook.toml`;
  const isEmbedded = databaseServer === undefined;
  const superuser =
    databaseServer === 'localhost'
      ? 'su postgres -c psql'
      : `psql postgresql://SUPERUSER@${databaseServer}/postgres`;
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
    `( set -a; . ${dir}/${file}; tollbook ${command} )`;
  const options = isEmbedded ? ` --embedded ${databaseFolder(dir, starter)}` : '';
  return [
    ...database,
    ...(isEmbedded ? [] : [withVariables('owner.env', 'migrate')]),
    withVariables('gateway.env', `serve ${config}${options}`),
  ];
}
