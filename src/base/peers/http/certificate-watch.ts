import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { AlertCondition } from '../../values/alert-condition.ts';

/** A failed certificate is trouble for this long, unless a connection to the same host succeeds. */
const rememberMs = 900_000;
/** More hosts than a configuration names. */
const maxHosts = 100;

const certificateCodes =
  /^(?:CERT_|ERR_TLS_CERT|ERR_SSL|EPROTO$|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|UNABLE_TO_(?:GET_ISSUER_CERT|VERIFY_LEAF))/;

export interface CertificateWatch {
  conditions(): AlertCondition[];
  close(): void;
}

/** Watches the connections of this process to its peers, by the channels of undici, which all of its clients use. */
export function watchCertificates(nowMs: () => number = () => performance.now()): CertificateWatch {
  const troubles = new Map<string, { readonly code: string; readonly atMs: number }>();
  const onError = (message: unknown): void => {
    const { host, code } = factsOf(message);
    if (host === undefined || code === undefined || !certificateCodes.test(code)) return;
    if (troubles.size < maxHosts) troubles.set(host, { code, atMs: nowMs() });
  };
  const onConnected = (message: unknown): void => {
    const { host, protocol } = factsOf(message);
    if (host !== undefined && protocol === 'https:') troubles.delete(host);
  };
  subscribe('undici:client:connectError', onError);
  subscribe('undici:client:connected', onConnected);
  return {
    conditions() {
      for (const [host, { atMs }] of troubles) if (nowMs() - atMs > rememberMs) troubles.delete(host);
      return [...troubles].map(([host, { code }]) => ({
        kind: 'certificate_trouble',
        subject: host,
        text: `The certificate of ${host} is not accepted (${code}): requests to it fail.`,
        details: { code },
      }));
    },
    close() {
      unsubscribe('undici:client:connectError', onError);
      unsubscribe('undici:client:connected', onConnected);
    },
  };
}

interface ConnectMessage {
  readonly connectParams?: { readonly host?: string; readonly protocol?: string };
  readonly error?: { readonly code?: unknown };
}

function factsOf(message: unknown) {
  const { connectParams, error } = message as ConnectMessage;
  const { host, protocol } = connectParams ?? {};
  return { host, protocol, code: typeof error?.code === 'string' ? error.code : undefined };
}
