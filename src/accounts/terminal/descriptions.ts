import { operatorRoles } from '../../base/values/operator-role.ts';
import { operatorScopes } from '../../base/values/operator-scope.ts';
import {
  by,
  type CommandDescription,
  config,
  flag,
  text,
  textOr,
  texts,
} from '../../base/terminal/command.ts';

const aboutOperator = { forms: ['NAME'], options: { by } } as const;
const aboutUser = { forms: ['ID | EMAIL | WALLET'], options: { by } } as const;
const creditMove = {
  forms: ['ACCOUNT AMOUNT'],
  options: {
    id: text('ID', 'an idempotency key of 16 characters or more: a repeated request with it changes nothing'),
  },
} as const;

/** The commands of operators, users, keys, tokens and credit. */
export const accountCommands = {
  'operators invite': {
    summary: 'invites a person to the console, and prints the link',
    forms: ['NAME --email ADDRESS --role ROLE --url URL'],
    options: {
      email: text('ADDRESS', 'of the person'),
      role: text('ROLE', operatorRoles.join(', ')),
      url: text('URL', 'where the gateway is reached, such as https://gateway.example'),
      by,
    },
  },
  'operators list': { summary: 'lists the people who may use the console, with their roles' },
  'operators withdraw': {
    summary: "takes a person's role away, and ends their sessions in every process",
    ...aboutOperator,
  },
  'operators reset-factor': {
    summary: 'removes the second factors of a person, so that they set up a new one at the next sign-in',
    ...aboutOperator,
  },
  'tokens create': {
    summary: "creates an operator's bearer token",
    forms: ['NAME --scope SCOPE'],
    options: {
      scope: texts('SCOPE', operatorScopes.join(', ')),
      account: texts('NAME', 'limits the token to an account'),
      days: text('N', 'how long it is valid; default: without end'),
    },
    notes: ['prints the token once'],
  },
  'tokens list': { summary: 'lists the operator tokens by name; the tokens themselves are not stored' },
  'tokens revoke': { summary: 'revokes an operator token in every process', forms: ['ID'] },
  'users disable': {
    summary: 'disables a user: ends the sessions, and refuses sign-ins and keys',
    ...aboutUser,
  },
  'users enable': { summary: 'lets a disabled user sign in again; the keys are valid again', ...aboutUser },
  'users erase': {
    summary: 'deletes all data about a user outside the ledger, for ever',
    ...aboutUser,
    options: {
      forfeit: flag('credit that is left expires; default: a user with credit is not erased'),
      results: flag('also deletes the results of calls that the wallets of the user have paid for'),
      config: text('FILE', `${config.help}: mails to the user that wait in its mail_dir are deleted now`),
      by,
    },
  },
  'keys create': {
    summary: 'creates an API key for model chat, and its account if there is none',
    forms: ['--account NAME'],
    options: {
      account: text('NAME', 'the account that pays'),
      name: textOr('TEXT', 'default', 'the name of the key'),
      models: text('a,b', 'the models it may use; default: all'),
      cap: text('5.00', 'the most that it may spend; default: the credit of the account'),
      budget: text(
        '1.00/day',
        'the most that it may spend in each UTC day or month, as 1.00/day or 20/month',
      ),
      days: text('N', 'how long it is valid; default: without end'),
    },
    notes: ['prints the key once'],
  },
  'keys list': {
    summary: 'lists the API keys by name; the keys themselves are not stored',
    options: { account: text('NAME', 'those of one account') },
  },
  'keys revoke': { summary: 'revokes an API key in every process', forms: ['ID'] },
  'credit grant': {
    summary: 'adds credit to an account',
    ...creditMove,
    notes: ['an amount such as 5.00, in the currency'],
  },
  'credit expire': {
    summary: 'removes credit that is not held from an account',
    ...creditMove,
    notes: ['removes the whole amount or nothing'],
  },
  'credit list': { isReading: true, summary: 'lists the accounts with their balance, held credit and use' },
} satisfies Readonly<Record<string, CommandDescription>>;
