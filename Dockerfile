# syntax=docker/dockerfile:1

# The Python of the tests; the Debian release named, so that an upgrade of it is a decision.
FROM python:3.11-slim-bookworm AS packages

ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/venv
COPY requirements/server.txt /tmp/requirements.txt
# Without the embedded Redis and llama.cpp: here they are services of their own. Wheels alone, so
# that no compiler is needed.
RUN /opt/venv/bin/pip install --only-binary=:all: --require-hashes -r /tmp/requirements.txt


FROM python:3.11-slim-bookworm

# /app first: `docker compose run web manage.py ...`
ENV PATH=/app:/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1

RUN useradd --uid 10001 --user-group --home-dir /data --no-create-home workbench \
    && install -d -m 700 -o workbench -g workbench /data

COPY --from=packages /opt/venv /opt/venv
WORKDIR /app
COPY --chmod=755 manage.py ./
COPY workbench workbench
COPY apps apps
COPY templates templates
COPY static static

# Settings want a key and a data folder; neither may end up in the image.
RUN WORKBENCH_SECRET_KEY=unused WORKBENCH_DATA=/tmp/none manage.py collectstatic --noinput \
    && python -m compileall -q workbench apps

USER workbench
VOLUME /data
EXPOSE 8000
CMD ["uvicorn", "workbench.asgi:application", "--host=0.0.0.0", "--port=8000", "--lifespan=off", "--no-proxy-headers"]
