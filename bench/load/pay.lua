-- SPDX-License-Identifier: Apache-2.0
-- pay.lua -- payments for wrk: `wrk -s pay.lua URL -- PATH KIND PREFIX`.
--
-- KIND `first`: each request has a key of its own, a UUIDv4, as most clients make them. `again`: keys that were sent
-- before, PREFIX-0 to PREFIX-511, in turn. `mix`: of ten requests six are the first, three are retries, one brings
-- another amount under a key that was used.
local KEYS, PAYERS = 512, 1000
local uuid = "%08x-%04x-4%03x-%04x-%06x%06x"
local payload = '{"from":"DE02%018d","to":"DE02500105170137075030","amount":%s,"currency":"EUR"}'
local headers = { ["Content-Type"] = "application/json" }
local random = math.random
local path, prefix, nth = nil, nil, 0

local function first()
  headers["Idempotency-Key"] = uuid:format(random(0, 0xffffffff), random(0, 0xffff), random(0, 0xfff),
    random(0x8000, 0xbfff), random(0, 0xffffff), random(0, 0xffffff))
  return wrk.format("POST", path, headers, payload:format(random(0, PAYERS - 1), "12.50"))
end

local function again(amount)
  nth = (nth + 1) % KEYS
  headers["Idempotency-Key"] = prefix .. "-" .. nth
  return wrk.format("POST", path, headers, payload:format(nth, amount))
end

local kinds = {
  first = first,
  again = function() return again("12.50") end,
  mix = function()
    local n = random(1, 10)
    if n <= 6 then return first() end
    return again(n <= 9 and "12.50" or "13.00")
  end,
}

function init(args)
  local source, seed = io.open("/dev/urandom", "rb"), 0
  for byte in source:read(6):gmatch(".") do seed = seed * 256 + byte:byte() end
  source:close()
  math.randomseed(seed)
  path, request, prefix = args[1], kinds[args[2]], args[3]
end

-- One line for whoever started wrk: answers, not 2xx, broken, seconds, p50 and p99 in microseconds.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format("load %d %d %d %.6f %.1f %.1f\n", summary.requests, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout, summary.duration / 1e6, latency:percentile(50),
    latency:percentile(99)))
end
