# Clients for Perl: perl.pl CLASS PORT.
use strict;
use warnings;
my ($class, $port) = @ARGV;
eval "require $class" or die $@;
my $r;
if ($class eq "AnyEvent::Redis") {
    my $async = AnyEvent::Redis->new(host => "127.0.0.1", port => $port);
    $r = sub { my ($name, @rest) = @_; $async->$name(@rest)->recv };
} else {
    my $sync = $class->new(server => "127.0.0.1:$port");
    $r = sub { my ($name, @rest) = @_; $sync->$name(@rest) };
    sleep $ENV{SILENT};
}
print "next ", scalar $r->("next", "orders"), "\n";
my @three = $r->("next", "orders", 3);
print "three @{ref $three[0] ? $three[0] : \@three}\n";
print "incr ", scalar $r->("incr", "orders"), "\n" for 1 .. 100;
