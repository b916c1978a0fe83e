import { operatorRoles } from '../../base/values/operator-role.ts';
import { operatorScopes } from '../../base/values/operator-scope.ts';
import { bookCommands, requireSealedHelp } from './book-commands.ts';
import type { ExitCode, OwnExits } from '../../base/terminal/exit-codes.ts';
import { transferCommands } from './transfer-commands.ts';

/** A command's file. `run` gets the arguments after the command's name and returns the exit code. */
export interface CommandModule {
  run(args: readonly string[]): Promise<ExitCode>;
}

export interface Command {
  readonly summary: string;
  readonly usage: string;
  /** It works with the reader's role of the database. */
  readonly isReading?: true;
  /** The exit codes that not every command has. */
  readonly exits?: OwnExits;
  load(): Promise<CommandModule>;
}

const wrongConfiguration = 'the configuration has mistakes';

/** Every command. Its file is loaded only when the command runs, so that `--help` stays fast. */
export const commands: Readonly<Record<string, Command | undefined>> & Record<string, Command> = {
  start: {
    summary: 'runs database, devnet and gateway on this machine, and pays for one job',
    usage:
      'tollbook start [--fresh] [--demo-data] [--dir .tollbook] [--port 8402] [--chain-port 8412]\n' +
      '  --fresh       deletes the state of the last run instead of continuing with it\n' +
      '  --demo-data   makes a month of activity first, where the folder has no state\n' +
      '  --chain-port  of the chain: without it any other port is taken where 8412 is in use',
    load: () => import('./commands/start.ts'),
  },
  devnet: {
    summary: 'runs only the devnet: chain, tokens, facilitator, example runner',
    usage: 'tollbook devnet [--dir .tollbook] [--chain-port 8412]',
    load: () => import('./commands/devnet.ts'),
  },
  pay: {
    summary: 'pays for a job on the devnet and waits for its result',
    usage:
      "tollbook pay SERVICE JOB 'BODY' [--dir .tollbook | --gateway URL] [--wait-secs 0]\n" +
      '  --gateway    another gateway on a devnet, instead of that of `npm start`\n' +
      '  --wait-secs  waits so long until the gateway offers the job',
    load: () => import('./commands/pay.ts'),
  },
  serve: {
    summary: 'runs a gateway',
    usage:
      'tollbook serve --config FILE [--workers all|none|only] [--quiet | --go-live --by NAME --why TEXT]\n' +
      '  --quiet    serves reads alone and makes no request to anyone, for a copy of the ledger\n' +
      '  --go-live  runs `tollbook go-live` first; needs DATABASE_URL\n' +
      '  SIGHUP reloads prices, rates, policies, tokens and models; SIGTERM finishes accepted requests and stops',
    exits: { wrongConfiguration },
    load: () => import('./commands/serve.ts'),
  },
  pricing: {
    summary: "answers what a job costs by gRPC and Connect, with the operator's signature",
    usage:
      'tollbook pricing --config FILE [--bind 127.0.0.1:8404] [--key-file FILE] [--quote-ttl-secs 300] [--trust-proxy RANGES]\n' +
      '  reads only log_level and the prices of the file, which may be that of a gateway\n' +
      "  the operator's private key is read from TOLLBOOK_OPERATOR_KEY or from the file, never from an argument\n" +
      '  --trust-proxy RANGES  addresses or CIDR ranges of proxies, with commas between: their X-Forwarded-For names the client\n' +
      '  SIGHUP reloads the prices; SIGTERM answers accepted requests and stops; needs no database',
    exits: { wrongConfiguration },
    load: () => import('./commands/pricing.ts'),
  },
  migrate: {
    summary: 'creates or updates the tables and functions of the database',
    usage: 'tollbook migrate\n  needs DATABASE_URL',
    load: () => import('./commands/migrate.ts'),
  },
  recover: {
    summary:
      'goes on after the ledger lost events, and records the lost payments that a chain shows as refunds due',
    usage:
      'tollbook recover --config FILE --by NAME [--rpc NETWORK=URL] [--since TIME] [--dry-run] [--force]\n' +
      '  stop every gateway first; refuses where nothing is wrong, unless --force\n' +
      '  --since    searches payments since then; default: the time of the last event that was kept\n' +
      '  --dry-run  changes nothing; a recovery that is not finished says so, and is run again; needs DATABASE_URL',
    load: () => import('../../finance/commands/recover.ts'),
  },
  'go-live': {
    summary: 'makes this database the ledger, after a restore or a move: its quiet gateways go live',
    usage:
      "tollbook go-live --config FILE --by NAME --why 'TEXT'\n" +
      '  stop every gateway of the database before first; begins the next generation of the log, and records who and why;\n' +
      '  refuses where events are known to be missing: `tollbook recover` goes on without them; needs DATABASE_URL',
    load: () => import('../../finance/commands/go-live.ts'),
  },
  'config check': {
    summary: 'checks a configuration and prints every mistake',
    usage:
      'tollbook config check FILE [--online] [--no-secrets]\n' +
      '  --online      also asks the RPCs of the file about their chains, contracts and tokens; those that do not answer are warnings;\n' +
      '                asks the sources of rates, and says what they answered, how old it is and how far from the others\n' +
      '  --no-secrets  reads no secret, and says which were not checked\n' +
      '  without it DATABASE_URL is checked too, where it is set\n' +
      '  changes nothing',
    exits: { wrongConfiguration },
    load: () => import('./commands/config/check.ts'),
  },
  'auth-dry-run': {
    summary: 'signs a request as a caller and checks whether a restricted job would allow it',
    usage:
      "tollbook auth-dry-run SERVICE JOB 'BODY' [--url http://127.0.0.1:8402] [--key-file FILE] [--nonce TEXT] [--ttl-secs 300]\n" +
      '  the key is read from TOLLBOOK_CALLER_KEY or from the file, never from an argument;\n' +
      '  settles nothing and uses no nonce',
    exits: { finding: 'the gateway would refuse the request' },
    load: () => import('../../jobs/commands/auth-dry-run.ts'),
  },
  settlements: {
    isReading: true,
    summary: 'lists the payments with an unknown settlement',
    usage: 'tollbook settlements\n  needs DATABASE_URL',
    load: () => import('../../jobs/commands/settlements/list.ts'),
  },
  'settlements resolve': {
    summary: "records an operator's decision on an unknown settlement, with its evidence",
    usage:
      "tollbook settlements resolve QUOTE_DIGEST (--paid TRANSACTION [--log-index N] | --unpaid) --evidence 'TEXT' --by NAME [--config FILE]\n" +
      '  with --config the chain is checked too, and must not show the opposite; without it, --paid needs the index of the\n' +
      "  transfer's log in its block; needs DATABASE_URL",
    load: () => import('../../finance/commands/settlements/resolve.ts'),
  },
  ...transferCommands,
  'calls dead': {
    summary: 'lists the dead letters: calls that could not be delivered',
    usage:
      'tollbook calls dead [--by-cause [--service ID | --job SERVICE/JOB | --reason REASON | --runner NAME | --since TIME | --before TIME]…]\n' +
      '  --by-cause  groups them by reason, status and words, without the numbers and ids in these; needs DATABASE_URL',
    load: () => import('../../jobs/commands/calls/dead.ts'),
  },
  'calls requeue': {
    summary: 'queues dead-lettered calls for delivery again',
    usage:
      'tollbook calls requeue CALL_ID\n' +
      'tollbook calls requeue (--cause CAUSE | --service ID | --job SERVICE/JOB | --reason REASON | --runner NAME\n' +
      '  | --since TIME | --before TIME)… | --all [--dry-run]\n' +
      '  those that match every option; calls whose payment was refunded are skipped, with a line each\n' +
      '  --dry-run  prints how many and changes nothing; needs DATABASE_URL',
    load: () => import('../../jobs/commands/calls/requeue.ts'),
  },
  'calls discard': {
    summary: 'gives calls up: they are not delivered any more, and their refunds are due',
    usage:
      "tollbook calls discard CALL_ID --why 'TEXT' [--by NAME]\n" +
      '  a dead letter, or a call that waits; who and why are on record\n' +
      'tollbook calls discard (--cause CAUSE | --service ID | --job SERVICE/JOB | --reason REASON | --runner NAME\n' +
      "  | --since TIME | --before TIME)… | --all --why 'TEXT' [--by NAME]\n" +
      '  (--dry-run | --count N)\n' +
      '  the dead letters that match every option: --dry-run says how many, --count confirms it; needs DATABASE_URL',
    load: () => import('../../jobs/commands/calls/discard.ts'),
  },
  'quotes revoke': {
    summary: 'ends the quotes that were issued before a time, in every gateway',
    usage:
      'tollbook quotes revoke --before 2026-11-20T06:30:00Z [--by NAME]\n' +
      '  payments that were started go on; needs DATABASE_URL',
    load: () => import('../../jobs/commands/quotes/revoke.ts'),
  },
  'operators invite': {
    summary: 'invites a person to the console, and prints the link',
    usage:
      `tollbook operators invite NAME --email ADDRESS --role ${operatorRoles.join('|')} --url URL [--by NAME]\n` +
      '  --url  where the gateway is reached, such as https://gateway.example; needs DATABASE_URL',
    load: () => import('../../accounts/commands/operators/invite.ts'),
  },
  'operators list': {
    summary: 'lists the people who may use the console, with their roles',
    usage: 'tollbook operators list\n  needs DATABASE_URL',
    load: () => import('../../accounts/commands/operators/list.ts'),
  },
  'operators withdraw': {
    summary: "takes a person's role away, and ends their sessions in every process",
    usage: 'tollbook operators withdraw NAME [--by NAME]\n  needs DATABASE_URL',
    load: () => import('../../accounts/commands/operators/withdraw.ts'),
  },
  'operators code': {
    summary: 'prints the code of the second factor of the demo operator of `npm start`',
    usage: 'tollbook operators code [--dir .tollbook]',
    load: () => import('./commands/operators/code.ts'),
  },
  'operators reset-factor': {
    summary: 'removes the second factors of a person, who sets up a new one at the next sign-in',
    usage: 'tollbook operators reset-factor NAME [--by NAME]\n  needs DATABASE_URL',
    load: () => import('../../accounts/commands/operators/reset-factor.ts'),
  },
  'tokens create': {
    summary: "creates an operator's bearer token",
    usage:
      'tollbook tokens create NAME --scope audit:read [--scope calls:read] … [--account NAME] … [--days N]\n' +
      `  scopes: ${operatorScopes.join(' ')}\n` +
      '  prints the token once; needs DATABASE_URL',
    load: () => import('../../accounts/commands/tokens/create.ts'),
  },
  'tokens list': {
    summary: 'lists the operator tokens by name; the tokens themselves are not stored',
    usage: 'tollbook tokens list\n  needs DATABASE_URL',
    load: () => import('../../accounts/commands/tokens/list.ts'),
  },
  'tokens revoke': {
    summary: 'revokes an operator token in every process',
    usage: 'tollbook tokens revoke ID\n  needs DATABASE_URL',
    load: () => import('../../accounts/commands/tokens/revoke.ts'),
  },
  'users disable': {
    summary: 'disables a user: ends the sessions, and refuses sign-ins and keys',
    usage:
      'tollbook users disable ID | EMAIL | WALLET [--by NAME]\n' +
      '  --by  the operator; default: your account on this machine; needs DATABASE_URL',
    load: () => import('../../accounts/commands/users/disable.ts'),
  },
  'users enable': {
    summary: 'lets a disabled user sign in again; the keys are valid again',
    usage:
      'tollbook users enable ID | EMAIL | WALLET [--by NAME]\n' +
      '  --by  the operator; default: your account on this machine; needs DATABASE_URL',
    load: () => import('../../accounts/commands/users/enable.ts'),
  },
  'users erase': {
    summary: 'deletes all that is known of a user beside the ledger, for ever',
    usage:
      'tollbook users erase ID | EMAIL | WALLET [--forfeit] [--results] [--config FILE] [--by NAME]\n' +
      '  --forfeit  credit that is left expires; default: a user with credit is not erased\n' +
      '  --results  also deletes the results of calls that the wallets of the user have paid for\n' +
      "  --config   the gateway's configuration: mails to the user that wait in its mail_dir are deleted now\n" +
      '  --by       the operator; default: your account on this machine; needs DATABASE_URL',
    load: () => import('../../accounts/commands/users/erase.ts'),
  },
  'keys create': {
    summary: 'creates an API key for model chat, and its account if there is none',
    usage:
      'tollbook keys create --account NAME [--name TEXT] [--models a,b] [--cap 5.00] [--budget 1.00/day] [--days N]\n' +
      '  --models  the models it may use; default: all\n' +
      '  --cap     the most that it may spend; default: the credit of the account\n' +
      '  --budget  the most that it may spend in each UTC day or month, as 1.00/day or 20/month\n' +
      '  prints the key once; needs DATABASE_URL',
    load: () => import('../../accounts/commands/keys/create.ts'),
  },
  'keys list': {
    summary: 'lists the API keys by name; the keys themselves are not stored',
    usage: 'tollbook keys list [--account NAME]\n  needs DATABASE_URL',
    load: () => import('../../accounts/commands/keys/list.ts'),
  },
  'keys revoke': {
    summary: 'revokes an API key in every process',
    usage: 'tollbook keys revoke ID\n  needs DATABASE_URL',
    load: () => import('../../accounts/commands/keys/revoke.ts'),
  },
  'credit grant': {
    summary: 'adds credit to an account',
    usage:
      'tollbook credit grant ACCOUNT AMOUNT [--id ID]\n  an amount such as 5.00, in the currency; needs DATABASE_URL\n' +
      '  --id  an idempotency key of 16 characters or more: a repeated request with it grants nothing more',
    load: () => import('../../accounts/commands/credit/grant.ts'),
  },
  'credit expire': {
    summary: 'removes credit that is not held from an account',
    usage:
      'tollbook credit expire ACCOUNT AMOUNT [--id ID]\n  removes the whole amount or nothing; --id is an idempotency key; needs DATABASE_URL',
    load: () => import('../../accounts/commands/credit/expire.ts'),
  },
  'credit list': {
    isReading: true,
    summary: 'lists the accounts with their balance, held credit and use',
    usage: 'tollbook credit list\n  needs DATABASE_URL',
    load: () => import('../../accounts/commands/credit/list.ts'),
  },
  'spend list': {
    isReading: true,
    summary: 'lists the earned spends whose payout failed or is late',
    usage: 'tollbook spend list\n  needs DATABASE_URL',
    load: () => import('../../chat/commands/spend/list.ts'),
  },
  ...bookCommands,
  verify: {
    isReading: true,
    summary: 'verifies an export against checkpoints and the public key, the database, or one receipt',
    usage:
      'tollbook verify EXPORT --checkpoint OLD --checkpoint NEW --pubkey KEY [--require-sealed]\n' +
      '  --checkpoint  a file or a folder of checkpoints, any number of times\n' +
      '  --pubkey      the key, or a file with it\n' +
      'tollbook verify [--checkpoint FILE] [--pubkey KEY] [--require-sealed]\n' +
      '  verifies the database that DATABASE_URL names\n' +
      'tollbook verify --receipt FILE --pubkey KEY [--require-sealed]\n' +
      '  verifies the proofs of one receipt, the JSON of GET /x402/receipts/{quote_digest}; opens no connection\n' +
      `${requireSealedHelp}  names the first wrong event, or the two checkpoints between which something was changed`,
    exits: { finding: 'something is not valid' },
    load: () => import('../../finance/commands/verify.ts'),
  },
  'log key': {
    summary: 'creates the key that seals the ledger',
    usage:
      'tollbook log key ORIGIN\n  prints the secret seed, and the public key for auditors\n' +
      'tollbook log key --config FILE\n  prints the public keys of the log, one for each generation; needs DATABASE_URL',
    load: () => import('../../audit/commands/log/key.ts'),
  },
  'projections rebuild': {
    summary: 'rebuilds the read models of finance from the events while the gateway runs',
    usage: 'tollbook projections rebuild\n  needs DATABASE_URL',
    load: () => import('../../audit/commands/projections/rebuild.ts'),
  },
  'runners pause': {
    summary: 'keeps calls back from a runner until it is resumed',
    usage: 'tollbook runners pause NAME [--by NAME]\n  NAME as in the configuration; needs DATABASE_URL',
    load: () => import('../../jobs/commands/runners/pause.ts'),
  },
  'runners resume': {
    summary: 'lets calls go to a paused runner again',
    usage: 'tollbook runners resume NAME [--by NAME]\n  NAME as in the configuration; needs DATABASE_URL',
    load: () => import('../../jobs/commands/runners/resume.ts'),
  },
};
