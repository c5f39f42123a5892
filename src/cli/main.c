/* SPDX-License-Identifier: Apache-2.0 */
/* main.c -- the `ibid` binary: find the subcommand in the table, read its options, run it. */
#include "broker/kafka_library.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "http/settings.h"

#include <string.h>

#define STORE     BIT(OPT_STORE)
#define CONTRACTS BIT(OPT_CONTRACTS)
#define TENANT    BIT(OPT_TENANT)
#define OPERATION BIT(OPT_OPERATION)
#define KEY       BIT(OPT_KEY)
#define SENDER    (BIT(OPT_CLIENT) | BIT(OPT_ACTOR) | BIT(OPT_RESOURCE))
#define JSON      BIT(OPT_JSON)
#define KEY_FILE  BIT(OPT_KEY_FILE)

#define OUTBOX_ACT (STORE | BIT(OPT_DESTINATION) | BIT(OPT_REASON) | JSON)

const struct cli_command cli_commands[] = {
    {
        .name = "init",
        .run = cmd_init,
        .takes = STORE | CONTRACTS | JSON,
        .needs = STORE | CONTRACTS,
        .operands = "",
        .summary = "make a store ready for a directory of contracts",
        .details = "Creates or migrates the store, applies the directory's schema.sqlite.sql or\n"
                   "schema.postgres.sql once, and keeps the contracts in the store. Safe to run\n"
                   "again, and by several processes at once.",
        .examples = "  $ ibid init --store sqlite:pay.db --contracts examples/payments\n"
                    "  $ IBID_STORE=postgres://ibid@db/ledger ibid init --contracts contracts\n",
    },
    {
        .name = "migrate",
        .run = cmd_migrate,
        .takes = STORE | JSON,
        .needs = STORE,
        .operands = "",
        .summary = "bring a store's schema to this version",
        .details = "Needs no contracts. Safe to run again, and by several processes at once: one\n"
                   "does it, the others wait. Your own tables are not touched.",
        .examples = "  $ ibid migrate --store sqlite:pay.db\n",
    },
    {
        .name = "contract check",
        .run = cmd_contract_check,
        .takes = STORE | CONTRACTS | JSON,
        .operands = "[DIR]",
        .operand_max = 1,
        .summary = "find what is wrong or left open in contracts",
        .details = "Reads every contract of the directory and prints each problem with its file,\n"
                   "its line and the question that is left open. With a store, its database\n"
                   "prepares every script: a missing table or column, a parameter of the wrong\n"
                   "type or a wrong answer is a problem, too. Nothing is run. Exit code 8 when\n"
                   "there is a problem.",
        .examples = "  $ ibid contract check examples/payments\n"
                    "  $ ibid contract check examples/payments --store sqlite:pay.db\n",
    },
    {
        .name = "contract matrix",
        .run = cmd_contract_matrix,
        .takes = CONTRACTS | BIT(OPT_FORMAT) | JSON,
        .operands = "[DIR]",
        .operand_max = 1,
        .summary = "print the tables that reviewers ask for",
        .details = "Prints, from the contracts: the idempotency matrix, retry policy, exception\n"
                   "queues, failure modes, the reconciliation plan, a sequence diagram per flow\n"
                   "and a runbook outline. --json is --format json.",
        .examples = "  $ ibid contract matrix examples/payments\n"
                    "  $ ibid contract matrix examples/payments --format markdown > REVIEW.md\n",
    },
    {
        .name = "contract review",
        .run = cmd_contract_review,
        .takes = STORE | CONTRACTS | BIT(OPT_FORMAT) | JSON,
        .operands = "[DIR]",
        .operand_max = 1,
        .summary = "answer the review checklists from contracts and schema",
        .details = "Answers four published checklists from the contracts and, with a store, from\n"
                   "its live schema. A question passes with its evidence, fails with what to do,\n"
                   "does not apply, or is left to a person. Exit code 8 when one fails. --json is\n"
                   "--format json.",
        .examples = "  $ ibid contract review examples/payments --store sqlite:pay.db\n"
                    "  $ ibid contract review examples/payments --format markdown > REVIEW.md\n",
    },
    {
        .name = "contract apply",
        .run = cmd_contract_apply,
        .takes = STORE | CONTRACTS | JSON,
        .needs = STORE,
        .operands = "[DIR]",
        .operand_max = 1,
        .summary = "keep the directory's contracts in the store",
        .details = "Commands are compared under the contract version they came with, so a version\n"
                   "that was put to use never changes: a changed contract needs a new version.",
        .examples = "  $ ibid contract apply examples/payments --store sqlite:pay.db\n",
    },
    {
        .name = "canon",
        .run = cmd_canon,
        .operands = "[FILE|-]",
        .operand_max = 1,
        .summary = "write a JSON text in canonical form",
        .details = "RFC 8785, except that a number which a double would change keeps all its\n"
                   "digits. Writes the canonical bytes and nothing else, not even a newline.\n"
                   "Without a file it reads the standard input.",
        .examples = "  $ echo '{\"b\":1.10,\"a\":[]}' | ibid canon\n"
                    "  {\"a\":[],\"b\":1.1}\n",
    },
    {
        .name = "fingerprint",
        .run = cmd_fingerprint,
        .takes = CONTRACTS | TENANT | OPERATION | SENDER | BIT(OPT_EXPLAIN) | JSON,
        .needs = CONTRACTS | TENANT | OPERATION,
        .operands = "[FILE|-]",
        .operand_max = 1,
        .summary = "show what makes two payloads the same",
        .details = "Prints the SHA-256 under which a payload is compared with an earlier one of\n"
                   "the same key, as `ibid submit` with the same options computes it. No store is\n"
                   "needed.",
        .examples = "  $ ibid fingerprint --contracts examples/payments --tenant acme \\\n"
                    "      --operation create-payment payment.json\n"
                    "  $ ibid fingerprint ... --explain payment.json | sha256sum\n",
    },
    {
        .name = "submit",
        .run = cmd_submit,
        .takes = STORE | CONTRACTS | TENANT | OPERATION | KEY | SENDER | BIT(OPT_CORRELATION_ID) |
                 BIT(OPT_CAUSATION_ID) | BIT(OPT_TRACEPARENT) | BIT(OPT_TRACESTATE) | KEY_FILE |
                 JSON,
        .needs = STORE | CONTRACTS | TENANT | OPERATION,
        .operands = "[FILE|-]",
        .operand_max = 1,
        .summary = "bring one command to its outcome",
        .details = "Runs the command once, or gives back the outcome it had: the same key and\n"
                   "payload may be sent any number of times. The payload is JSON, from a file or\n"
                   "the standard input. --key may be left out where the contract derives it from\n"
                   "the payload. The exit code tells the decision (see `ibid help`).",
        .examples =
            "  $ echo '{\"from\":\"A\",\"to\":\"B\",\"amount\":12.50,\"currency\":\"EUR\"}' |\n"
            "      ibid submit --store sqlite:pay.db --contracts examples/payments \\\n"
            "      --tenant acme --operation create-payment --key k-1 -\n"
            "  executed   201  {\"id\":\"0197...\"}\n",
    },
    {
        .name = "serve",
        .run = cmd_serve,
        .settings = true,
        .takes = STORE | CONTRACTS,
        .operands = "[NAME=VALUE...]",
        .operand_max = OPERANDS_MAX,
        .summary = "serve the ledger over HTTP",
        .details =
            "Takes commands at the routes that contracts declare and at /v1/commands/OPERATION,\n"
            "with an Idempotency-Key. Settings come from the command line, the environment or the\n"
            "file, in this order. Who sends a request is known by its token (`ibid token "
            "create`);\n"
            "without one, on loopback only, it is of the tenant that http.open.tenant names.\n"
            "SIGTERM finishes what has begun and ends it; SIGHUP reads the contracts again, and a\n"
            "bad one leaves the old ones in force. Logs go to the standard error, one JSON object\n"
            "a line.",
        .examples = "  $ ibid serve --config ibid.yaml\n"
                    "  $ ibid serve --store sqlite:pay.db --contracts examples/payments \\\n"
                    "      http.listen=127.0.0.1:8080 http.open.tenant=demo\n",
    },
    {
        .name = "proxy",
        .run = cmd_proxy,
        .settings = true,
        .takes = STORE | CONTRACTS | BIT(OPT_UPSTREAM),
        .operands = "[NAME=VALUE...]",
        .operand_max = OPERANDS_MAX,
        .summary = "protect a service that knows nothing of retries",
        .details =
            "Is `ibid serve` with a service behind it. A request whose route belongs to a "
            "contract\n"
            "with `handler: upstream` is sent on once for each Idempotency-Key, and its answer is\n"
            "kept and given to every retry; where no answer came, retries hear that, and the\n"
            "contract's inquiry finds out. Other requests are passed on as upstream.other says.\n"
            "The service's change and ibid's row are not one transaction: docs/proxy.md says what\n"
            "that means.",
        .examples =
            "  $ ibid proxy --upstream http://127.0.0.1:3000 --store sqlite:keys.db \\\n"
            "      --contracts contracts http.listen=127.0.0.1:8080 http.open.tenant=demo\n",
    },
    {
        .name = "relay",
        .run = cmd_relay,
        .settings = true,
        .takes = STORE | CONTRACTS | BIT(OPT_DESTINATION) | BIT(OPT_METRICS_LISTEN),
        .operands = "[NAME=VALUE...]",
        .operand_max = OPERANDS_MAX,
        .summary = "bring committed events to their destinations",
        .details =
            "Sends what the outbox holds to the destinations that relay.destinations names, in "
            "the\n"
            "order of each aggregate's versions, and keeps where and when each event arrived. Any\n"
            "number of relays may run at once: they share the lanes of a destination, and who\n"
            "ends is replaced after its lease (relay.lease). What fails is tried again or waits\n"
            "for a person (`ibid exception list`), and keeps back its own aggregate only. SIGTERM\n"
            "ends what has begun, and the relay. With --metrics-listen it tells how the outbox\n"
            "stands and what it did, at /metrics.",
        .examples = "  $ ibid relay --config ibid.yaml\n"
                    "  $ ibid relay --store sqlite:pay.db --contracts examples/payments \\\n"
                    "      relay.destinations.kafka-main.file.path=events.ndjson\n"
                    "  $ ibid relay --config ibid.yaml --metrics-listen 127.0.0.1:9464\n",
    },
    {
        .name = "pause relay",
        .run = cmd_act,
        .act = {ACTION_DO, "pause", "relay", "paused"},
        .takes = STORE | BIT(OPT_REASON) | JSON,
        .needs = STORE | BIT(OPT_REASON),
        .operands = "",
        .summary = "send no events anywhere until it is resumed",
        .details =
            "Every relay on the store stops within about a second, and stays so when it is\n"
            "started again. Nothing is lost and no attempt is used up. Concerns all tenants:\n"
            "needs a token in IBID_TOKEN with the role admin. The reason is kept. Exit code 3\n"
            "when it is refused: it is paused already, say.",
        .examples = "  $ ibid pause relay --reason 'the broker is moved tonight'\n",
    },
    {
        .name = "pause destination",
        .run = cmd_act,
        .act = {ACTION_DO, "pause", "destination", "paused"},
        .takes = STORE | BIT(OPT_REASON) | JSON,
        .needs = STORE | BIT(OPT_REASON),
        .operands = "NAME",
        .operand_max = 1,
        .summary = "send no events to one destination until it is resumed",
        .details =
            "As `ibid pause relay`, for one destination; others go on. A destination that no\n"
            "relay has ever served is refused. Needs a token in IBID_TOKEN with the role admin.",
        .examples = "  $ ibid pause destination kafka-main --reason 'its disk is full'\n",
    },
    {
        .name = "pause event",
        .run = cmd_act,
        .act = {ACTION_DO, "pause", "event", "paused"},
        .takes = STORE | CONTRACTS | BIT(OPT_REASON) | JSON,
        .needs = STORE | BIT(OPT_REASON),
        .operands = "TYPE",
        .operand_max = 1,
        .summary = "send no events of one type until it is resumed",
        .details =
            "Of the token's tenant, to any destination. What comes behind such an event in its\n"
            "aggregate waits, too; all others go on. Needs a token in IBID_TOKEN with the role\n"
            "operator or admin. With --contracts, a type that has no contract is refused.",
        .examples = "  $ ibid pause event PaymentCreated --reason 'consumers are mended'\n",
    },
    {
        .name = "pause list",
        .run = cmd_pause_list,
        .takes = STORE | TENANT | JSON,
        .needs = STORE,
        .operands = "",
        .summary = "list what is paused, since when, by whom and why",
        .details = "Prints a table, or with --json one object per line. With --tenant: what\n"
                   "concerns all, and event types of this tenant.",
        .examples = "  $ ibid pause list --store sqlite:pay.db\n",
    },
    {
        .name = "resume relay",
        .run = cmd_act,
        .act = {ACTION_DO, "resume", "relay", "resumed"},
        .takes = STORE | BIT(OPT_REASON) | JSON,
        .needs = STORE | BIT(OPT_REASON),
        .operands = "",
        .summary = "let the relay go on where it stood",
        .details = "Needs a token in IBID_TOKEN with the role admin. Exit code 3 when it is\n"
                   "refused: it is not paused, say.",
        .examples = "  $ ibid resume relay --reason 'the broker is there again'\n",
    },
    {
        .name = "resume destination",
        .run = cmd_act,
        .act = {ACTION_DO, "resume", "destination", "resumed"},
        .takes = STORE | BIT(OPT_REASON) | JSON,
        .needs = STORE | BIT(OPT_REASON),
        .operands = "NAME",
        .operand_max = 1,
        .summary = "let events go to a destination again",
        .details = "Also one that the relay itself paused, because it refused everything; the\n"
                   "exception that tells about it is resolved. Needs a token in IBID_TOKEN with\n"
                   "the role admin.",
        .examples = "  $ ibid resume destination partner --reason 'their endpoint is back'\n",
    },
    {
        .name = "resume event",
        .run = cmd_act,
        .act = {ACTION_DO, "resume", "event", "resumed"},
        .takes = STORE | BIT(OPT_REASON) | JSON,
        .needs = STORE | BIT(OPT_REASON),
        .operands = "TYPE",
        .operand_max = 1,
        .summary = "let events of a type go again, in the order of their aggregates",
        .details = "Of the token's tenant. Needs a token in IBID_TOKEN with the role operator or\n"
                   "admin.",
        .examples = "  $ ibid resume event PaymentCreated --reason 'consumers are mended'\n",
    },
    {
        .name = "tenant list",
        .run = cmd_list,
        .list = {SQL_tenant_list, &tenant_shape, "no tenants"},
        .takes = STORE | JSON,
        .needs = STORE,
        .operands = "",
        .summary = "list tenants with their commands and open exceptions",
        .details = "It counts the commands of each tenant: of many millions that takes a while.",
        .examples = "  $ ibid tenant list --store sqlite:pay.db\n",
    },
    {
        .name = "token create",
        .run = cmd_token_create,
        .takes = STORE | TENANT | BIT(OPT_CLIENT) | BIT(OPT_ROLES) | BIT(OPT_EXPIRES) |
                 BIT(OPT_BY) | JSON,
        .needs = STORE | TENANT | BIT(OPT_CLIENT),
        .operands = "",
        .summary = "make a token for a client of the server",
        .details =
            "Prints the token, once: only the SHA-256 of its secret is kept. Its tenant and its\n"
            "client, never the token, say whose a command is, so that a client may have several\n"
            "and replace one without its retries becoming new commands. `client` sends commands\n"
            "and looks at its own, `operator` looks at all of the tenant.",
        .examples = "  $ ibid token create --store sqlite:pay.db --tenant acme --client web "
                    "--expires 90d\n"
                    "  $ ibid token create --store sqlite:pay.db --tenant acme --client ops \\\n"
                    "      --roles operator --json | jq -r .token\n",
        .meanings = {[OPT_CLIENT] = "the client that requests with it come from"},
    },
    {
        .name = "token list",
        .run = cmd_token_list,
        .takes = STORE | TENANT | BIT(OPT_LIMIT) | BIT(OPT_AFTER) | JSON,
        .needs = STORE,
        .operands = "",
        .summary = "list tokens, the newest first",
        .details = "Prints a table, or with --json one object per line. Neither has a secret.",
        .examples = "  $ ibid token list --store sqlite:pay.db --tenant acme\n",
    },
    {
        .name = "token revoke",
        .run = cmd_token_revoke,
        .takes = STORE | BIT(OPT_BY) | JSON,
        .needs = STORE,
        .operands = "ID",
        .operand_max = 1,
        .summary = "make a token invalid, for good",
        .details = "Servers notice within five seconds. Safe to run again.",
        .examples = "  $ ibid token revoke --store sqlite:pay.db 9f86d081884c7d65\n",
    },
    {
        .name = "command show",
        .run = cmd_command_show,
        .takes = STORE | TENANT | OPERATION | KEY | BIT(OPT_SCOPE) | BIT(OPT_DUPLICATES) |
                 BIT(OPT_PAYLOAD) | KEY_FILE | JSON,
        .needs = STORE | TENANT,
        .operands = "[ID]",
        .operand_max = 1,
        .summary = "show one command, its events, audit entry, conflicts and duplicates",
        .details =
            "The command is named by its id, or by --operation and --key. Where several senders\n"
            "used the same key, --scope says which one is meant, by the parts that tell them\n"
            "apart: client=web. Duplicates are counted within a second or so, and listed with\n"
            "--duplicates where the contract keeps each. What is kept of the payload is shown\n"
            "with --payload, decrypted with --key-file.",
        .examples = "  $ ibid command show --store sqlite:pay.db --tenant acme \\\n"
                    "      --operation create-payment --key k-1\n"
                    "  $ ibid command show --store sqlite:pay.db --tenant acme \\\n"
                    "      --operation create-payment --key k-1 --scope client=web\n",
    },
    {
        .name = "command list",
        .run = cmd_command_list,
        .takes = STORE | TENANT | OPERATION | KEY | BIT(OPT_STATE) | BIT(OPT_LIMIT) |
                 BIT(OPT_AFTER) | JSON,
        .needs = STORE,
        .operands = "",
        .summary = "list commands, the newest first",
        .details = "Prints a table, or with --json one object per line.",
        .examples = "  $ ibid command list --store sqlite:pay.db --tenant acme --state rejected\n"
                    "  $ ibid command list --store sqlite:pay.db --json | jq -r .key\n",
    },
    {
        .name = "outbox show",
        .run = cmd_outbox_show,
        .takes = STORE | TENANT | JSON,
        .needs = STORE | TENANT,
        .operands = "EVENT_ID",
        .operand_max = 1,
        .summary = "show one event and how it stands toward each destination",
        .details =
            "The event with its payload, its state toward each destination that it was written\n"
            "for, why it does not go on and what it waits for, the exception that is open for it,\n"
            "and the evidence of every arrival.",
        .examples = "  $ ibid outbox show --store sqlite:pay.db --tenant acme EVENT_ID\n",
    },
    {
        .name = "outbox list",
        .run = cmd_outbox_list,
        .takes = STORE | TENANT | BIT(OPT_DESTINATION) | BIT(OPT_STATE) | BIT(OPT_TYPE) |
                 BIT(OPT_AGGREGATE) | BIT(OPT_LIMIT) | BIT(OPT_AFTER) | JSON,
        .needs = STORE,
        .operands = "",
        .summary = "list events and how they stand toward destinations, the newest first",
        .details =
            "One line for each event and destination. PENDING: it has yet to go, or waits for one\n"
            "before it in its aggregate; CLAIMED: a relay sends it now; PUBLISHED: it arrived;\n"
            "FAILED: it is tried again; PARKED: a person decides. Prints a table, or with --json\n"
            "one object per line.",
        .examples = "  $ ibid outbox list --store sqlite:pay.db --state parked\n"
                    "  $ ibid outbox list --store sqlite:pay.db --aggregate payment/p-1 --json\n",
        .meanings = {[OPT_STATE] =
                         "pending, claimed, published, failed, parked, skipped or cancelled",
                     [OPT_DESTINATION] = "only toward this destination",
                     [OPT_TYPE] = "only events of this type",
                     [OPT_AFTER] = "EVENT_ID/DESTINATION, as the page before says: the next one"},
    },
    {
        .name = "exception show",
        .run = cmd_exception_show,
        .takes = STORE | TENANT | KEY_FILE | JSON,
        .needs = STORE | TENANT,
        .operands = "ID",
        .operand_max = 1,
        .summary = "show one item of human work and what may be done about it",
        .details =
            "Why it stopped, whose work it is, until when, what it is about, what may be done\n"
            "about it, and what people have done so far. What a service said that did not tell\n"
            "whether the work was done is shown as the contract's payload class allows; where it\n"
            "is encrypted, --key-file opens it.",
        .examples = "  $ ibid exception show --store sqlite:pay.db --tenant acme ID\n",
    },
    {
        .name = "exception list",
        .run = cmd_exception_list,
        .takes = STORE | TENANT | BIT(OPT_STATE) | BIT(OPT_QUEUE) | BIT(OPT_OWNER) |
                 BIT(OPT_ASSIGNEE) | BIT(OPT_LIMIT) | BIT(OPT_AFTER) | JSON,
        .needs = STORE,
        .operands = "",
        .summary = "list what waits for a person, the newest first",
        .details = "Commands whose outcome nobody knows, and whatever else can't go on by itself.\n"
                   "Prints a table, or with --json one object per line.",
        .examples =
            "  $ ibid exception list --store sqlite:pay.db --owner payments\n"
            "  $ ibid exception list --store sqlite:pay.db --json | jq 'select(.overdue)'\n",
        .meanings = {[OPT_STATE] = "open, resolved or all (open)"},
    },
    {
        .name = "exception assign",
        .run = cmd_act,
        .act = {ACTION_ASSIGN, .past = "assigned"},
        .takes = STORE | BIT(OPT_TO) | BIT(OPT_OWNER) | BIT(OPT_REASON) | JSON,
        .needs = STORE | BIT(OPT_REASON),
        .operands = "ID",
        .operand_max = 1,
        .summary = "give an item of human work to a team or a person",
        .details =
            "Who acts is proven by the token in IBID_TOKEN, whose tenant the item belongs to;\n"
            "it needs the role operator or admin. The reason is kept in the item's history.",
        .examples =
            "  $ IBID_TOKEN=ibid_... ibid exception assign ID --to bea --reason 'her case'\n"
            "  $ ibid exception assign ID --owner treasury --reason 'a bank matter'\n",
        .meanings = {[OPT_OWNER] = "the team whose work it becomes"},
    },
    {
        .name = "exception resolve",
        .run = cmd_act,
        .act = {ACTION_DO, .past = "resolved"},
        .takes = STORE | CONTRACTS | BIT(OPT_ACTION) | BIT(OPT_REASON) | BIT(OPT_ANSWER) |
                 BIT(OPT_STATUS) | BIT(OPT_RESOURCE_TYPE) | BIT(OPT_RESOURCE_ID) | KEY_FILE | JSON,
        .needs = STORE | BIT(OPT_ACTION) | BIT(OPT_REASON),
        .operands = "ID",
        .operand_max = 1,
        .summary = "end an item of human work by one of the actions that it allows",
        .details =
            "confirm-executed completes a command of which nobody knew whether it was done, with\n"
            "the answer that duplicates get; confirm-not-executed makes it FAILED, and the same\n"
            "key may be sent again; close ends the item alone. Nothing is run, and no event is\n"
            "sent. release, skip and cancel decide about a parked event: see `ibid outbox`. Where\n"
            "a second person has to approve the action, it is proposed. Needs a token in\n"
            "IBID_TOKEN with the role operator or admin, and for commands the contracts. Exit\n"
            "code 3 when it is refused.",
        .examples =
            "  $ ibid exception resolve ID --action confirm-not-executed --reason 'not booked'\n"
            "  $ ibid exception resolve ID --action confirm-executed --status 201 \\\n"
            "      --answer '{\"id\":\"p-1\"}' --reason 'seen on the statement'\n",
        .meanings = {[OPT_RESOURCE_TYPE] = "with --resource-id: what was made",
                     [OPT_RESOURCE_ID] = "likewise"},
    },
    {
        .name = "exception approve",
        .run = cmd_act,
        .act = {ACTION_APPROVE, .past = "approved"},
        .takes = STORE | CONTRACTS | BIT(OPT_REASON) | KEY_FILE | JSON,
        .needs = STORE | BIT(OPT_REASON),
        .operands = "ID",
        .operand_max = 1,
        .summary = "agree with what another person proposes, which is then done",
        .details =
            "Needs a token in IBID_TOKEN with the role approver or admin, of another client\n"
            "than the one that proposed it, and for commands the contracts. Exit code 3 when\n"
            "it is refused.",
        .examples = "  $ ibid exception approve ID --reason 'checked with the bank'\n",
    },
    {
        .name = "exception decline",
        .run = cmd_act,
        .act = {ACTION_DECLINE, .past = "declined"},
        .takes = STORE | BIT(OPT_REASON) | JSON,
        .needs = STORE | BIT(OPT_REASON),
        .operands = "ID",
        .operand_max = 1,
        .summary = "disagree with what another person proposes; the item stays open",
        .details =
            "Needs a token in IBID_TOKEN with the role approver or admin; who proposed it may\n"
            "take it back. Exit code 3 when it is refused.",
        .examples = "  $ ibid exception decline ID --reason 'the statement is of last month'\n",
    },
    {
        .name = "outbox release",
        .run = cmd_act,
        .act = {ACTION_DO, "release", "delivery", "released"},
        .takes = OUTBOX_ACT,
        .needs = OUTBOX_ACT & ~JSON,
        .operands = "EVENT_ID",
        .operand_max = 1,
        .summary = "have a destination try an event again, now",
        .details =
            "One that is parked, or that failed and waits for its next attempt: it goes before\n"
            "those that wait behind it, and has all its attempts again. Who acts is proven by the\n"
            "token in IBID_TOKEN, whose tenant the event belongs to; it needs the role operator "
            "or\n"
            "admin. Exit code 3 when it is refused.",
        .examples = "  $ ibid outbox release EVENT_ID --destination kafka-main \\\n"
                    "      --reason 'the topic allows larger messages now'\n",
        .meanings = {[OPT_DESTINATION] = "where it is held"},
    },
    {
        .name = "outbox skip",
        .run = cmd_act,
        .act = {ACTION_DO, "skip", "delivery", "skipped"},
        .takes = OUTBOX_ACT,
        .needs = OUTBOX_ACT & ~JSON,
        .operands = "EVENT_ID",
        .operand_max = 1,
        .summary = "never send a parked event to a destination; those behind it go on",
        .details =
            "Its aggregate goes on without it there; other destinations get it. That it was\n"
            "skipped stays as evidence. Where the event's contract says so\n"
            "(on_parked.skip_needs_approval) it is proposed, and a second person approves it by\n"
            "`ibid exception approve`. Needs a token in IBID_TOKEN with the role operator or\n"
            "admin. Exit code 3 when it is refused.",
        .examples = "  $ ibid outbox skip EVENT_ID --destination hook --reason 'told by phone'\n",
        .meanings = {[OPT_DESTINATION] = "where it is parked"},
    },
    {
        .name = "outbox cancel",
        .run = cmd_act,
        .act = {ACTION_DO, "cancel", "delivery", "cancelled"},
        .takes = OUTBOX_ACT,
        .needs = OUTBOX_ACT & ~JSON,
        .operands = "EVENT_ID",
        .operand_max = 1,
        .summary = "withdraw a parked event wherever it has not arrived",
        .details =
            "At every destination that its contract named, also those that have yet to come to\n"
            "it; where it arrived already is said. One that is on its way at this very moment may\n"
            "still arrive, and then its evidence says so. May need a second person, as `outbox\n"
            "skip`. Needs a token in IBID_TOKEN with the role operator or admin. Exit code 3 when\n"
            "it is refused.",
        .examples = "  $ ibid outbox cancel EVENT_ID --destination hook --reason 'test data'\n",
        .meanings = {[OPT_DESTINATION] = "where it is parked"},
    },
    {
        .name = "command recover",
        .run = cmd_command_recover,
        .takes = STORE | CONTRACTS | TENANT | OPERATION | BIT(OPT_LIMIT) | BIT(OPT_DRY_RUN) |
                 BIT(OPT_UNKNOWN) | KEY_FILE | JSON,
        .needs = STORE | CONTRACTS,
        .operands = "",
        .summary = "find out what became of staged commands whose worker went silent",
        .details =
            "Takes over commands in progress whose lease has ended, and looks, as the contract's\n"
            "`recover` says: its script decides, or the command becomes UNKNOWN, for a person.\n"
            "Nothing is run again. A lease without an end is never taken. With --unknown, staged\n"
            "commands that are UNKNOWN are looked at again, where a script can: what it finds out\n"
            "ends them and resolves their exception; otherwise they are left as they are. Safe to\n"
            "run at any time, and by several at once. Exit code 6 when a command is unknown or\n"
            "was left.",
        .examples =
            "  $ ibid command recover --store sqlite:pay.db --contracts contracts --dry-run\n"
            "  $ ibid command recover --store sqlite:pay.db --contracts contracts --unknown\n",
    },
    {
        .name = "retain",
        .run = cmd_retain,
        .takes = STORE | CONTRACTS | BIT(OPT_DRY_RUN) | BIT(OPT_BATCH) | BIT(OPT_MAX_SECONDS) |
                 BIT(OPT_EVENTS_OLDER_THAN) | BIT(OPT_ARCHIVE) | BIT(OPT_NO_ARCHIVE) | JSON,
        .needs = STORE | CONTRACTS,
        .operands = "",
        .summary = "remove what has had its time",
        .details =
            "After the contract's key.retain a command loses its body and text, and a late\n"
            "duplicate is still answered; after audit.retain it is removed with its evidence.\n"
            "Commands without an outcome, and events, are kept; --events-older-than removes\n"
            "events that are done: they arrived, or a person skipped or cancelled them, at every\n"
            "destination. With --archive they are written to files first, with their evidence.\n"
            "PostgreSQL drops audit entries and events by whole months. Runs in small\n"
            "transactions beside the work, may be stopped at any time and run again.",
        .examples =
            "  $ ibid retain --store sqlite:pay.db --contracts examples/payments --dry-run\n"
            "  $ ibid retain --store sqlite:pay.db --contracts examples/payments --max-seconds "
            "60\n"
            "  $ ibid retain --store sqlite:pay.db --contracts examples/payments \\\n"
            "      --events-older-than 90d --archive archive\n",
    },
    {
        .name = "archive list",
        .run = cmd_archive_list,
        .takes = STORE | BIT(OPT_LIMIT) | JSON,
        .operands = "[DIR]",
        .operand_max = 1,
        .summary = "list archives of events",
        .details = "Of a directory, as their manifests tell, without reading the files; or, with\n"
                   "--store, what was archived of a store and when, the newest first.",
        .examples = "  $ ibid archive list archive\n"
                    "  $ ibid archive list --store sqlite:pay.db\n",
    },
    {
        .name = "archive verify",
        .run = cmd_archive_verify,
        .takes = JSON,
        .operands = "FILE|DIR...",
        .operand_max = OPERANDS_MAX,
        .summary = "check that archives are whole",
        .details =
            "Reads every file and compares digests, sizes and counts with its manifest, and every\n"
            "line is read as an event. Exit code 8 when one is damaged or has no manifest.",
        .examples = "  $ ibid archive verify archive\n",
    },
    {
        .name = "archive restore",
        .run = cmd_archive_restore,
        .takes = STORE | JSON,
        .needs = STORE,
        .operands = "FILE...",
        .operand_max = OPERANDS_MAX,
        .summary = "put archived events back into the store",
        .details =
            "With their evidence, each file as a whole or not at all, after it was verified. What\n"
            "is there already is left as it is; an event that is there and differs is an error.\n"
            "Relays may run: nothing is sent again. The next retention removes them again.",
        .examples = "  $ ibid archive restore --store sqlite:pay.db archive/*.ndjson.zst\n",
    },
    {
        .name = "erase",
        .run = cmd_erase,
        .takes = STORE | TENANT | BIT(OPT_ID) | OPERATION | KEY | BIT(OPT_SCOPE) |
                 BIT(OPT_RESOURCE_TYPE) | BIT(OPT_RESOURCE_ID) | BIT(OPT_ACTOR) | BIT(OPT_REASON) |
                 BIT(OPT_BY) | BIT(OPT_BATCH) | BIT(OPT_DRY_RUN) | BIT(OPT_LIST) | BIT(OPT_LIMIT) |
                 JSON,
        .needs = STORE,
        .operands = "",
        .summary = "forget what tells about a person, on request",
        .details =
            "Of one command (--id, or --operation and --key), of a resource, or of an actor:\n"
            "removes payloads, bodies and texts, the payloads of events, and the names of who\n"
            "sent duplicates; of an actor also its name. Keys, fingerprints, states, audit\n"
            "entries, ids and times stay, so that a duplicate is recognised. Events that were\n"
            "sent, backups and your own tables are not ibid's to erase. Commands without an\n"
            "outcome are left: exit code 7. Runs in small transactions, may be stopped at any\n"
            "time and run again. --list shows who had what erased, when and why.",
        .examples = "  $ ibid erase --store sqlite:pay.db --tenant acme --actor u7 \\\n"
                    "      --reason 'request 2026-118' --dry-run\n"
                    "  $ ibid erase --store sqlite:pay.db --list\n",
        .meanings = {[OPT_TENANT] = "the tenant whose it is; with --list: only its erasures (all)",
                     [OPT_ID] = "id of the command",
                     [OPT_ACTOR] = "all commands of this actor",
                     [OPT_BATCH] = "commands in one transaction, 1 to 100000 (1000)"},
    },
    {
        .name = "reference show",
        .run = cmd_reference_show,
        .takes = STORE | TENANT | BIT(OPT_SOURCE) | BIT(OPT_EXTERNAL) | BIT(OPT_TYPE) |
                 BIT(OPT_ID) | JSON,
        .needs = STORE | TENANT,
        .operands = "",
        .summary = "show which resource an external id means, or what a resource is called",
        .details =
            "From the outside by --source and --external, from the inside by --type and --id,\n"
            "which shows one line for each system that knows the resource.",
        .examples =
            "  $ ibid reference show --store sqlite:pay.db --tenant acme --source sap \\\n"
            "      --external 4711\n"
            "  $ ibid reference show --store sqlite:pay.db --tenant acme --type case --id c-1\n",
    },
    {
        .name = "status",
        .run = cmd_status,
        .takes = STORE | CONTRACTS | JSON,
        .needs = STORE,
        .operands = "",
        .summary = "tell how the ledger stands, and what needs somebody",
        .details =
            "Commands (an estimate where they are many), those in progress and those of which\n"
            "nobody knows whether they ran; open work by owner, and how much of it is late. With\n"
            "--contracts also whether the store keeps what the directory holds. Reads a few rows\n"
            "only, however large the ledger is; `ibid doctor` looks closer. Exit code 0 whenever\n"
            "the store answers.",
        .examples = "  $ ibid status --store sqlite:pay.db\n"
                    "  $ ibid status --store sqlite:pay.db --json | jq .exceptions.overdue\n",
    },
    {
        .name = "doctor",
        .run = cmd_doctor,
        .takes = STORE | CONTRACTS | JSON,
        .needs = STORE,
        .operands = "",
        .summary = "tell what is unsafe about a store and how it is set up",
        .details =
            "Looks at the database's settings and version, at the libraries in use, at ibid's\n"
            "schema and, with --contracts, at the contracts. Exit code 8 when something must not "
            "stay as it\n"
            "is; warnings alone leave it at 0.",
        .examples = "  $ ibid doctor --store sqlite:pay.db --contracts examples/payments\n",
    },
    {
        .name = "version",
        .run = cmd_version,
        .takes = JSON,
        .operands = "",
        .summary = "print the version, and those of the libraries in use",
        .details =
            "Prints the version of ibid and those of SQLite and librdkafka that it runs with, "
            "pinned\n"
            "by ibid's build or the system's; with --json also that of the schema it writes.",
        .examples = "  $ ibid version\n",
    },
    {
        .name = "help",
        .run = cmd_help,
        .operands = "[COMMAND]",
        .operand_max = OPERANDS_MAX,
        .summary = "explain a command",
        .details =
            "Without a command: the list of commands and the exit codes. `ibid help settings`\n"
            "lists the settings of `ibid serve` and `ibid proxy`.",
        .examples = "  $ ibid help submit\n",
    },
    {0},
};

enum { COMMANDS = sizeof cli_commands / sizeof *cli_commands - 1 };

/* The command that the first words name, and how many of them are its name. */
static const struct cli_command *find_command(size_t count, const char *const *words,
                                              size_t *ret_words)
{
	for (const struct cli_command *command = cli_commands; command->name; command++) {
		const char *space = strchr(command->name, ' ');
		size_t first = space ? (size_t)(space - command->name) : strlen(command->name);
		if (count < 1 || strlen(words[0]) != first || memcmp(words[0], command->name, first) != 0)
			continue;
		if (space && (count < 2 || strcmp(words[1], space + 1) != 0))
			continue;
		*ret_words = space ? 2 : 1;
		return command;
	}
	return NULL;
}

static int unknown_command(size_t count, const char *const *words)
{
	const char *names[COMMANDS];
	char given[64] = "";
	bool group = false;
	for (size_t i = 0; i < COMMANDS; i++) {
		const char *space = strchr(cli_commands[i].name, ' ');
		names[i] = cli_commands[i].name;
		group = group || (space && strlen(words[0]) == (size_t)(space - names[i]) &&
		                  strncmp(names[i], words[0], strlen(words[0])) == 0);
	}
	strncat(given, words[0], sizeof given - 2);
	if (group && count < 2)
		return usage_error(NULL, "%s needs a command: see `ibid help %s`", words[0], words[0]);
	if (count > 1 && (group || words[1][0] != '-')) {
		strncat(given, " ", sizeof given - 1 - strlen(given));
		strncat(given, words[1], sizeof given - 1 - strlen(given));
	}
	const char *near = nearest(given, names, COMMANDS);
	if (!near && !group)
		near = nearest(words[0], names, COMMANDS);
	if (near)
		return usage_error(NULL, "unknown command \"%s\"; did you mean `ibid %s`?", given, near);
	return usage_error(NULL, "unknown command \"%s\"", given);
}

static int help_settings(void)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	settings_describe(&out);
	out_text(
	    "Settings of `ibid serve`: on its command line (NAME=VALUE), in the environment, or in\n"
	    "the file of --config, where dots are nested mappings. The first of these wins.\n\n");
	out_text(str_text(&out));
	str_release(&out);
	return CLI_OK;
}

int cmd_help(const struct args *args)
{
	size_t words = 0;
	if (!args->operand_count) {
		help_overview();
		return CLI_OK;
	}
	if (args->operand_count == 1 && strcmp(args->operands[0], "settings") == 0)
		return help_settings();
	const struct cli_command *command = find_command(args->operand_count, args->operands, &words);
	if (command && words == args->operand_count)
		help_command(command);
	else if (args->operand_count != 1 || !help_group(args->operands[0]))
		return unknown_command(args->operand_count, args->operands);
	return CLI_OK;
}

static void describe_library(struct str *out, const struct library *library)
{
	obj_begin(out, NULL, '{');
	obj_text(out, "name", library->name);
	obj_text(out, "version", library->version);
	obj_bool(out, "pinned", library->pinned);
	obj_end(out, '}');
}

int cmd_version(const struct args *args)
{
	const struct library libraries[] = {store_sqlite_library(), kafka_library()};
	const size_t count = sizeof libraries / sizeof *libraries;
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	bool ok = true;
	if (args_has(args, OPT_JSON)) {
		obj_begin(&out, NULL, '{');
		obj_text(&out, "version", ibid_version());
		obj_int(&out, "schema", STORE_SCHEMA);
		obj_begin(&out, "libraries", '[');
		for (size_t i = 0; i < count; i++)
			describe_library(&out, &libraries[i]);
		obj_end(&out, ']');
		obj_end(&out, '}');
		ok = out_line(&out);
	} else {
		out_textf("ibid %s\n", ibid_version());
		for (size_t i = 0; i < count; i++)
			out_textf("%s %s, %s\n", libraries[i].name, libraries[i].version,
			          library_origin(&libraries[i]));
	}
	str_release(&out);
	return ok ? CLI_OK : CLI_ERROR;
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int dispatch(size_t count, char **words)
{
	struct args args;
	size_t used = 0;
	const char *const *names = (const char *const *)words;
	if (count == 0)
		return usage_error(NULL, "no command was given");
	if (is_help(words[0]) || (count > 1 && is_help(words[1]) && help_group(words[0]))) {
		if (is_help(words[0]))
			help_overview();
		return CLI_OK;
	}
	if (strcmp(words[0], "--version") == 0)
		return cmd_version(&(struct args){0});
	if (words[0][0] == '-')
		return usage_error(NULL, "the command comes first, then its options: \"%.100s\"", words[0]);
	const struct cli_command *command = find_command(count, names, &used);
	if (!command)
		return unknown_command(count, names);
	int exit = CLI_OK;
	switch (args_read(command, (int)(count - used), words + used, &args)) {
	case ARGS_HELP: help_command(command); break;
	case ARGS_BAD: exit = CLI_USAGE; break;
	case ARGS_FAILED: exit = CLI_ERROR; break;
	case ARGS_OK: exit = command->run(&args);
	}
	args_release(&args);
	return exit;
}

int main(int argc, char **argv)
{
	out_init();
	return out_finish(dispatch(argc > 0 ? (size_t)argc - 1 : 0, argv + 1));
}
