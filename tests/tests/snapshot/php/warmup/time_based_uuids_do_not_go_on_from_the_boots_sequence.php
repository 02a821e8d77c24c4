<?php
echo json_encode([uuid_create(UUID_TYPE_TIME), uuid_create(UUID_TYPE_TIME), uuid_create(UUID_TYPE_RANDOM)]);
