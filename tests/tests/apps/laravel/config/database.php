<?php
// A database in a file.
return ['default' => 'sqlite', 'connections' => ['sqlite' => ['driver' => 'sqlite', 'database' => storage_path('data.sqlite'), 'prefix' => '']], 'migrations' => 'migrations'];
