/** The requests that the gateway saw and those that it refused as invalid. */
export class RequestLog {
  requests = [];
  violations = [];
  #keepsRequests;

  /** @param {boolean} keepsRequests whether requests are kept (violations always are) */
  constructor(keepsRequests) {
    this.#keepsRequests = keepsRequests;
  }

  /**
   * Starts the record of a request; it is completed while the request runs.
   *
   * @param {import('./exchange.js').Exchange} exchange
   * @returns {object}
   */
  open(exchange) {
    const { method, url, headers } = exchange.request;
    const record = {
      id: exchange.id,
      method,
      path: url,
      headers,
      body: undefined,
      at: exchange.at,
      aborted: false,
    };
    if (this.#keepsRequests) this.requests.push(record);
    exchange.response.once('close', () => {
      record.endedAt = Date.now();
      record.aborted = exchange.abandoned;
      if (exchange.response.headersSent) record.status = exchange.response.statusCode;
    });
    return record;
  }

  /**
   * Records that a request broke a rule.
   *
   * @param {object} record
   * @param {{ rule: string, message: string }} violation
   */
  addViolation(record, { rule, message }) {
    record.violation = { rule, message };
    this.violations.push({ rule, message, id: record.id, path: record.path, at: record.at });
  }

  /** Empties the log. */
  clear() {
    this.requests.length = 0;
    this.violations.length = 0;
  }
}
