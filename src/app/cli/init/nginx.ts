/** A server of nginx with TLS in front of a gateway, for a folder that its `http` block includes; docs/operations/tls.md says why. */
export function nginxText(
  publicUrl: string,
  { port, routesPort }: { readonly port: string; readonly routesPort: string | undefined },
): string {
  const { hostname, port: publicPort } = new URL(publicUrl);
  const listened = publicPort === '' ? '443' : publicPort;
  const places =
    routesPort === undefined
      ? [place('/', `http://127.0.0.1:${port}`)]
      : [place('/tollbook/', `http://127.0.0.1:${port}/`), place('/', `http://127.0.0.1:${routesPort}`)];
  return `# Written by \`tollbook init\`. Put the certificate of your authority here, as certbot does.
server {
  listen ${listened} ssl;
  listen [::]:${listened} ssl;
  server_name ${hostname};
  ssl_certificate /etc/letsencrypt/live/${hostname}/fullchain.pem;
  ssl_certificate_key /etc/letsencrypt/live/${hostname}/privkey.pem;
  ssl_protocols TLSv1.2 TLSv1.3;
  large_client_header_buffers 4 32k;   # a payment has a header of up to 16 KiB
  client_max_body_size 0;              # the gateway has limits
  proxy_http_version 1.1;
  proxy_set_header Host $http_host;
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
  proxy_next_upstream off;             # a request that was sent is never sent again
  proxy_request_buffering off;
  proxy_buffering off;
  proxy_buffer_size 32k;
  proxy_buffers 8 32k;
  proxy_busy_buffers_size 64k;
  proxy_read_timeout 10m;
${places.join('')}}
`;
}

function place(path: string, to: string): string {
  return `  location ${path} {\n    proxy_pass ${to};\n  }\n`;
}
