# SPDX-License-Identifier: Apache-2.0
# cli: main.c and one file per command
halo_SOURCES += \
	src/cli/check_report.c src/cli/check_report.h \
	src/cli/cmd_bench.c \
	src/cli/cmd_convert.c \
	src/cli/cmd_doctor.c \
	src/cli/cmd_evaluate.c \
	src/cli/cmd_explain.c \
	src/cli/cmd_help.c \
	src/cli/cmd_inspect.c \
	src/cli/cmd_predict.c \
	src/cli/cmd_train.c \
	src/cli/evaluate_by.c src/cli/evaluate_by.h \
	src/cli/command.h \
	src/cli/commands.h \
	src/cli/exit.c \
	src/cli/help.c \
	src/cli/main.c \
	src/cli/predict_plot.c src/cli/predict_plot.h \
	src/cli/ops_json.h \
	src/cli/progress.c src/cli/progress.h \
	src/cli/restore.c src/cli/restore.h
