// Addresses of views: `#/removals?stage=near&source=FinPile%2FNews`. Each can be sent to a colleague.

/** Filters that all views have. */
const SHARED = ["source", "from", "to"];

export function readAddress() {
  const [path, query] = (location.hash.replace(/^#\/?/, "") || "flow").split("?");
  return { view: path || "flow", filters: Object.fromEntries(new URLSearchParams(query || "")) };
}

/** The address of a view with filters; empty ones are left out. */
export function addressOf(view, filters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return `#/${view}${text ? `?${text}` : ""}`;
}

/** The address of another view with those of the filters that all views have. */
export function sharedAddress(view, filters, more = {}) {
  const kept = Object.fromEntries(SHARED.filter((name) => filters[name]).map((name) => [name, filters[name]]));
  return addressOf(view, { ...kept, ...more });
}

export function go(address) {
  location.hash = address.slice(1);
}
