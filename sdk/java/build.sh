#!/bin/sh
# Builds the jars of VERSION in OUT, the same bytes each time, installs them into
# an empty Maven repository, and tries them in an empty project. With FIRN_URL, it
# also takes IDs from that server.
#
#	sdk/java/build.sh OUT v1.2.3
set -eu
if [ $# -ne 2 ]; then
	echo 'usage: sdk/java/build.sh OUT VERSION' >&2
	exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
version=${2#v}
cd "$(dirname "$0")"
cache=$PWD/../../build/java/m2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# copy MODULE copies what a package is built from, with the version.
copy() {
	mkdir -p "$work/$1"
	cp -R "$1/pom.xml" "$1/src" "$work/$1"
	sed "s/0-SNAPSHOT/$version/" "$1/pom.xml" >"$work/$1/pom.xml"
}

# install FILE… installs jars from files.
install() {
	mvn -B -q -Dmaven.repo.local="$cache" org.apache.maven.plugins:maven-install-plugin:3.1.3:install-file "$@"
}

modules=.
test ! -e spring/pom.xml || modules='. spring'
for module in $modules; do
	copy "$module"
	mvn -B -q -Dmaven.repo.local="$cache" -Dmaven.test.skip=true -f "$work/$module/pom.xml" package
	name=$(sed -n 's:^  <artifactId>\(.*\)</artifactId>:\1:p' "$module/pom.xml")-$version
	cp "$work/$module/target/$name.jar" "$work/$module/target/$name-sources.jar" "$out"
	cp "$work/$module/pom.xml" "$out/$name.pom"
	install -Dfile="$out/$name.jar" -DpomFile="$out/$name.pom" -Dsources="$out/$name-sources.jar"
done

mkdir -p "$work/empty/src/main/java"
cat >"$work/empty/pom.xml" <<XML
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId>
  <artifactId>empty</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.release>17</maven.compiler.release>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>com.github.firnid</groupId>
      <artifactId>firn-client</artifactId>
      <version>$version</version>
    </dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin>
        <artifactId>maven-compiler-plugin</artifactId>
        <version>3.13.0</version>
      </plugin>
      <plugin>
        <artifactId>maven-resources-plugin</artifactId>
        <version>3.3.1</version>
      </plugin>
    </plugins>
  </build>
</project>
XML
cat >"$work/empty/src/main/java/Smoke.java" <<'JAVA'
import com.github.firnid.client.Client;
import com.github.firnid.client.FakeClient;
import java.time.Clock;
import java.util.List;

class Smoke {
    public static void main(String[] args) {
        System.out.println(new FakeClient(Clock.systemUTC(), 1).sequencer("orders").next());
        String url = System.getenv("FIRN_URL");
        if (url != null && !url.isEmpty()) {
            try (Client client = new Client(List.of(url))) {
                System.out.println(client.sequencer("orders").next());
            }
        }
        Module module = Client.class.getModule();
        String version = module.isNamed()
                ? module.getDescriptor().rawVersion().orElseThrow()
                : Client.class.getPackage().getImplementationVersion();
        if (!version.equals(args[0])) {
            throw new AssertionError(version);
        }
    }
}
JAVA
mvn -B -q -Dmaven.repo.local="$cache" -f "$work/empty/pom.xml" compile
java -cp "$work/empty/target/classes:$out/firn-client-$version.jar" Smoke "$version"

# The same program as a module, with a runtime of only the modules it needs.
mkdir "$work/module"
(echo 'package smoke;' && cat "$work/empty/src/main/java/Smoke.java") >"$work/module/Smoke.java"
echo 'module smoke { requires com.github.firnid.client; }' >"$work/module/module-info.java"
jar=$out/firn-client-$version.jar
javac -p "$jar" -d "$work/classes" "$work/module/"*.java
if command -v jlink >/dev/null; then
	jlink -p "$jar:$work/classes" --add-modules smoke --output "$work/image"
	"$work/image/bin/java" -m smoke/smoke.Smoke "$version"
fi
