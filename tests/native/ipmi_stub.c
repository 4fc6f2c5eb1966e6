/* A BMC for tests: LD_PRELOAD answers the ioctls of <linux/ipmi.h>, with the kernel's own layout of their structs.
 *
 * The device is a FIFO that is opened for reading and writing: a byte in it is an answer that waits. The file that
 * IPMI_STUB names is read at each question; numbers are hexadecimal:
 *
 *   sdr ID NEXT BYTES        a Sensor Data Record; the first of the file is also 0000
 *   sel ID NEXT BYTES        an entry of the event log
 *   state LUN NUMBER BYTES   what Get Sensor Reading tells, after the completion code
 *   answer FUNCTION COMMAND BYTES   of any other question, with the completion code
 *   event                    an event of the BMC's own comes before each answer
 *   mute                     questions are taken and never answered
 *   hang                     questions are not even taken
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/ipmi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static unsigned char answer[512];
static int answer_size, events;
static long asked;

static int parse(const char *text, unsigned char *bytes)
{
	int size = 0, used;
	unsigned int byte;

	while (size < 400 && sscanf(text, " %2x%n", &byte, &used) == 1) {
		bytes[size++] = byte;
		text += used;
	}
	return size;
}

static void say(int code, const unsigned char *bytes, int size)
{
	answer[0] = code;
	if (!code)
		memcpy(answer + 1, bytes, size);
	answer_size = code ? 1 : size + 1;
}

/* A record of `what`, cut as asked for. */
static void record(FILE *script, const char *what, unsigned int id, int at, int size)
{
	char line[2048], word[16];
	unsigned char told[512];
	unsigned int own, next;
	int used, all, first = 1;

	while (fgets(line, sizeof(line), script)) {
		if (sscanf(line, "%15s %x %x %n", word, &own, &next, &used) != 3 || strcmp(word, what))
			continue;
		if (own == id || (first && id == 0)) {
			all = parse(line + used, told + 2);
			told[0] = next & 0xff, told[1] = next >> 8;
			if (size == 0xff)
				size = all - at;
			if (at + size > all)
				return say(0xca, NULL, 0);
			memmove(told + 2, told + 2 + at, size);
			return say(0, told, size + 2);
		}
		first = 0;
	}
	say(0xcb, NULL, 0);
}

static void reading(FILE *script, unsigned int lun, unsigned int number)
{
	char line[2048];
	unsigned char told[512];
	unsigned int own, other;
	int used;

	while (fgets(line, sizeof(line), script))
		if (sscanf(line, "state %x %x %n", &own, &other, &used) == 2 && own == lun && other == number)
			return say(0, told, parse(line + used, told));
	say(0xcb, NULL, 0);
}

static void other(FILE *script, unsigned int function, unsigned int command)
{
	char line[2048];
	unsigned int own, its;
	int used;

	while (fgets(line, sizeof(line), script))
		if (sscanf(line, "answer %x %x %n", &own, &its, &used) == 2 && own == function && its == command) {
			answer_size = parse(line + used, answer);
			return;
		}
	say(0xc1, NULL, 0);
}

static int has(FILE *script, const char *order)
{
	char line[2048];
	int found = 0;

	while (!found && fgets(line, sizeof(line), script))
		found = !strncmp(line, order, strlen(order));
	rewind(script);
	return found;
}

static int question(int file, const struct ipmi_req *req)
{
	const struct ipmi_system_interface_addr *to = (const void *)req->addr;
	const unsigned char *data = req->msg.data;
	FILE *script = fopen(getenv("IPMI_STUB"), "r");

	if (to->addr_type != IPMI_SYSTEM_INTERFACE_ADDR_TYPE || to->channel != IPMI_BMC_CHANNEL ||
	    req->addr_len != sizeof(*to) || !script)
		return -1;
	while (has(script, "hang"))
		sleep(1);
	asked = req->msgid;
	if (has(script, "mute")) {
		fclose(script);
		return 0;
	}
	events = has(script, "event");
	if (req->msg.netfn == 0x0a && req->msg.cmd == 0x23 && req->msg.data_len == 6)
		record(script, "sdr", data[2] | data[3] << 8, data[4], data[5]);
	else if (req->msg.netfn == 0x0a && req->msg.cmd == 0x43 && req->msg.data_len == 6)
		record(script, "sel", data[2] | data[3] << 8, data[4], data[5]);
	else if (req->msg.netfn == 0x04 && req->msg.cmd == 0x2d && req->msg.data_len == 1)
		reading(script, to->lun, data[0]);
	else
		other(script, req->msg.netfn, req->msg.cmd);
	fclose(script);
	return write(file, "answer", events + 1) > 0 ? 0 : -1;
}

static int reply(int file, struct ipmi_recv *recv)
{
	char byte;

	if (read(file, &byte, 1) != 1)
		return -1;
	recv->recv_type = events ? IPMI_ASYNC_EVENT_RECV_TYPE : IPMI_RESPONSE_RECV_TYPE;
	recv->msgid = asked;
	memset(recv->addr, 0, recv->addr_len);
	memcpy(recv->msg.data, answer, answer_size < recv->msg.data_len ? answer_size : recv->msg.data_len);
	recv->msg.data_len = answer_size;
	events = 0;
	return 0;
}

int ioctl(int file, unsigned long request, ...)
{
	static int (*real)(int, unsigned long, void *);
	va_list rest;
	void *argument;

	va_start(rest, request);
	argument = va_arg(rest, void *);
	va_end(rest);
	if ((unsigned int)request == (unsigned int)IPMICTL_SEND_COMMAND)
		return question(file, argument);
	if ((unsigned int)request == (unsigned int)IPMICTL_RECEIVE_MSG_TRUNC)
		return reply(file, argument);
	if (!real)
		real = (int (*)(int, unsigned long, void *))dlsym(RTLD_NEXT, "ioctl");
	return real(file, request, argument);
}
