import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { Server } from 'node:https';
import tls from 'node:tls';
import { onTestFinished } from 'vitest';
import { makeCertificate } from './certificate.ts';
import { listening } from './listening.ts';
import { temporaryFolder } from './program.ts';

/** Needs the program `openssl`. A server for `localhost` whose certificate, signed by itself, ends after so many days. */
export async function startSignedServer(
  days: number,
  answer: RequestListener = (_, response) => void response.end(),
): Promise<{ readonly port: string; readonly certificate: string }> {
  const files = makeCertificate(temporaryFolder(), days);
  const certificate = readFileSync(files.certificate, 'utf8');
  const server = new Server(
    { cert: certificate, key: readFileSync(files.key, 'utf8'), maxHeaderSize: 65_536 },
    answer,
  );
  server.on('tlsClientError', () => {});
  const { port } = new URL(await listening(server));
  return { port, certificate };
}

/** Makes this process accept a certificate until the test ends. */
export function trustHere(certificate: string): void {
  const known = tls.getCACertificates('default');
  onTestFinished(() => tls.setDefaultCACertificates(known));
  tls.setDefaultCACertificates([...known, certificate]);
}
