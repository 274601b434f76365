require "redis" # ruby.rb DRIVER PORT

r = Redis.new(host: "127.0.0.1", port: ARGV[1].to_i, driver: ARGV[0].to_sym)
sleep ENV["SILENT"].to_f
puts "next #{r.call("NEXT", "orders")}"
puts "three #{r.call("NEXT", "orders", 3).join(" ")}"
100.times { puts "incr #{r.incr("orders")}" }
