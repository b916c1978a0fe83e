import { config, flag, rpc, text, texts, zone as tz } from '../../base/terminal/command.ts';

/** Options that several commands of finance have. */
export const network = text('NETWORK', 'such as eip155:8453');
export const tx = text('TRANSACTION', 'its hash');
export const log = text('INDEX', "of the transfer's log in its block, if the transaction has several");
export const evidence = text("'TEXT'", 'how you know it, for the record');
export const pubkey = text('KEY', 'the public key of the log, or a file with it');
export const checkpoint = texts('FILE', 'a file or a folder of checkpoints');
export const input = text('EXPORT', 'a file of `export --format jsonl`, instead of the database');

export const attestedBy = text(
  'KEY',
  'the public key of a verifier, or a file with it: the newest attestation that it has signed is trusted',
);

/** Of the commands that can require that their events are sealed, and read the database alone, which has its own checkpoints. */
export const databaseSealed = {
  'require-sealed': flag('not done unless a signed checkpoint covers every event that is used'),
  pubkey,
};
export const sealed = {
  ...databaseSealed,
  checkpoint: { ...checkpoint, help: `${checkpoint.help}; with --input` },
};

/** Of the commands that read the books: from the database, or from an export. */
export const source = {
  input,
  'exported-at': text(
    'TIME',
    'when the file of --input was exported; needed if it has no event after the period',
  ),
  tz,
  currency: text('USD', 'that of credit, for a ledger that does not say it'),
};

/** Of the commands that say what amounts are worth. */
export const valued = {
  rates: text(
    'FILE',
    'a CSV of date, commodity, currency and rate: what amounts are worth beside their atoms;\ndefault: the file that TOLLBOOK_RATES names',
  ),
  'value-in': text('EUR', 'the currency if the file of --rates has several'),
};

/** Of the commands that can ask the chains. */
export const chains = { rpc, config };
