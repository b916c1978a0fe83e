import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { packageEnvironment } from './installed.ts';

/** Needs the program `openssl`. A certificate that names `localhost`, signed by itself, and its key: paths of PEM files in the folder. */
export function makeCertificate(
  folder: string,
  days = 30,
): { readonly certificate: string; readonly key: string } {
  const [certificate, key] = [path.join(folder, 'server.crt'), path.join(folder, 'server.key')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const files = ['-keyout', key, '-out', certificate, '-days', String(days)];
  execFileSync('openssl', ['req', '-x509', ...curve, ...subject, ...files], {
    stdio: 'pipe',
    env: packageEnvironment(),
  });
  return { certificate, key };
}
