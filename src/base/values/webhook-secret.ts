/** The secret as libraries of Standard Webhooks take it: they decode the base64 after the prefix. */
export function webhookSecretText(secret: string): string {
  return `whsec_${Buffer.from(secret).toString('base64')}`;
}
