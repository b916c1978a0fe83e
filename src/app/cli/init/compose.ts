import { isLoopback, hostOf } from '../../../base/config/hosts.ts';
import type { Answers } from './answers.ts';

/** The name by which a container reaches the machine that it runs on. */
const machine = 'host.docker.internal';

/** An address of this machine, as a container reaches it; any other as it is. */
export function fromContainer(address: string): string {
  const url = new URL(address);
  if (!isLoopback(hostOf(url))) return address;
  url.hostname = machine;
  return url.href.replace(/\/$/, '');
}

/**
 * What a gateway of the repository's `docker-compose.yml` has that its own answers say: a second file for Compose, which merges the two.
 * @param routesPort where paid routes listen; undefined: none are sold
 */
export function composeText(dir: string, { network }: Answers, routesPort: string | undefined): string {
  const ofRoutes = [
    `    ports: ['127.0.0.1:${routesPort}:${routesPort}']`,
    `    extra_hosts: ['${machine}:host-gateway']`,
  ];
  const ofFacilitator = [
    '    environment:',
    '      FACILITATOR_TOKEN: ${FACILITATOR_TOKEN:?ID:KEY, the key of the portal of the facilitator}',
  ];
  const lines = [
    '# Written by `tollbook init`, for a clone of the repository:',
    `# docker compose --file docker-compose.yml --file ${dir}/compose.yaml up --detach gateway`,
    'services:',
    '  gateway:',
    '    volumes:',
    '      - type: bind',
    `        source: ${dir}/tollbook.toml`,
    '        target: /etc/tollbook/tollbook.toml',
    '        read_only: true',
    '        bind: { create_host_path: false }',
    ...(routesPort === undefined ? [] : ofRoutes),
    ...(network.facilitator.key === 'signs' ? ofFacilitator : []),
  ];
  return `${lines.join('\n')}\n`;
}
