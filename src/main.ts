/** What the package `tollbook` exports to programs that embed a gateway. */
export { type GatewayOptions, type RunningGateway, startGateway, type WorkersMode } from './app/start.ts';
export { createLogger } from './app/logger.ts';
export type { Ending } from './app/shut-down.ts';
export { loadConfig } from './base/config/load.ts';
export { ConfigError } from './base/config/mistakes.ts';
export type { IssuedQuote, QuoteIssuer, QuoteRequest } from './jobs/use-cases/issue-quote.ts';
export type { AuthorizeCall, FacilitatorCall } from './payments/peers/facilitator/facilitator-auth.ts';
export type { Mail, Mailer } from './base/peers/mail/mailer.ts';
export { migrate } from './ledger/store/migrations.ts';
