require "redis" # ruby ids.rb [PORT]

# Threads share it, and redis-rb opens another connection after a fork.
FIRN = Redis.new(host: "127.0.0.1", port: ARGV.fetch(0, 3476).to_i, timeout: 2, reconnect_attempts: 1)

def next_id = Integer(FIRN.call("NEXT", "orders"))

def next_ids(count) = FIRN.call("NEXT", "orders", count).map { |text| Integer(text) }

puts next_id, next_ids(100)
$stdout.flush
Process.wait(fork { puts next_id })
puts next_id
