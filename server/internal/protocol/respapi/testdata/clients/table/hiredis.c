// hiredis: hiredis PORT.
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static redisReply *call(redisContext *c, const char *command) {
    redisReply *r = redisCommand(c, command);
    if (r == NULL || r->type == REDIS_REPLY_ERROR) {
        printf("error %s\n", r == NULL ? c->errstr : r->str);
        exit(1);
    }
    return r;
}

int main(int argc, char **argv) {
    redisContext *c = redisConnect("127.0.0.1", atoi(argv[argc - 1]));
    sleep(atoi(getenv("SILENT")));
    printf("next %s\n", call(c, "NEXT orders")->str);
    redisReply *three = call(c, "NEXT orders 3");
    printf("three");
    for (size_t i = 0; i < three->elements; i++) printf(" %s", three->element[i]->str);
    printf("\n");
    for (int i = 0; i < 100; i++) printf("incr %lld\n", call(c, "INCR orders")->integer);
    return 0;
}
