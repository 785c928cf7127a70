"""What is written from the roles and the pins: definitions, documents, images, packages."""
