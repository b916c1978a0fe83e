/**
 * What operators write for the record. Without `@`: the ledger keeps it for ever, so no e-mail address may get there.
 */
export const operatorTextPattern = /^[ -?A-~]{1,200}$/;
export const operatorNamePattern = /^[A-Za-z0-9._-]{1,64}$/;
