import { noteSigner } from '../../src/base/values/log/checkpoint.ts';

/** The seed of the log's key: that of `signer` in log-load.ts. */
export const logSeed = Buffer.alloc(32, 1);

/** The verifier whose attestation `refunds due` begins with. */
export const auditor = noteSigner('audit.example/bench', [Buffer.alloc(32, 2)]);
